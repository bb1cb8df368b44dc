"""`python -m edgeembed_runtime` is the command `edgeembed-runtime`."""

import sys

from edgeembed_runtime.cli import main

if __name__ == "__main__":
    sys.exit(main())
