"""What PyInstaller needs to pack the package: it finds this through the entry point `pyinstaller40`."""

from pathlib import Path


def get_hook_dirs() -> list[str]:
    """Return the folders that hold hooks for PyInstaller."""
    return [str(Path(__file__).parent)]
