"""The command `edgeembed-runtime`."""

from edgeembed_runtime.cli.main import main

__all__ = ["main"]
