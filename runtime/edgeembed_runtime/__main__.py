"""Run the command `edgeembed-runtime` with `python -m edgeembed_runtime`."""

import sys

from edgeembed_runtime.cli import main

if __name__ == "__main__":
    sys.exit(main())
