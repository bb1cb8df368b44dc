"""PyInstaller hooks, found through the entry point `pyinstaller40`."""

from pathlib import Path


def get_hook_dirs() -> list[str]:
    """Return the folders with PyInstaller hooks."""
    return [str(Path(__file__).parent)]
