"""A readable folder: on the disk, or inside a zip file.

An encoder reads its bundle through this module. Importing pathlib would take a twentieth of the time that importing
NumPy and ONNX Runtime takes (`python -m experiments.footprint.footprint`), so nothing here imports it.
"""

import os
from typing import IO, Any, Literal, Protocol, runtime_checkable


@runtime_checkable
class Folder(Protocol):
    """A readable folder or file: a `DiskFolder`, a `Path`, or an entry of a zip file."""

    @property
    def name(self) -> str:
        """The last part of the path."""

    def __truediv__(self, name: str, /) -> "Folder":
        """Return the entry of this name in the folder."""

    def is_dir(self) -> bool:
        """Return whether this is a folder."""

    def is_file(self) -> bool:
        """Return whether this is a file."""

    def open(self, mode: Literal["rb"], /) -> IO[Any]:
        """Open the file for reading bytes."""


class DiskFolder(os.PathLike[str]):
    """A folder or file on the disk.

    Args:
        path: Its path; it need not exist.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)

    def __fspath__(self) -> str:
        return self._path

    def __str__(self) -> str:
        return self._path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path!r})"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return os.path.basename(self._path.rstrip("/" + os.sep))

    def __truediv__(self, name: str, /) -> "DiskFolder":
        return DiskFolder(os.path.join(self._path, name))

    def names(self) -> list[str]:
        """Return the sorted names of what is in the folder.

        Raises:
            OSError: If that fails.
        """
        return sorted(os.listdir(self._path))

    def absolute(self) -> "DiskFolder":
        """Return the same folder by a path that does not depend on the working folder."""
        return DiskFolder(os.path.join(os.getcwd(), self._path))

    def is_dir(self) -> bool:
        """Return whether this is a folder; False for a path that the system cannot look up (too long, for example)."""
        return os.path.isdir(self._path)

    def is_file(self) -> bool:
        """Return whether this is a file; False for a path that the system cannot look up."""
        return os.path.isfile(self._path)

    def is_link(self) -> bool:
        """Return whether this is a symbolic link; False for a path that the system cannot look up."""
        return os.path.islink(self._path)

    def open(self, mode: Literal["rb"] = "rb", /) -> IO[bytes]:
        """Open the file for reading bytes.

        Raises:
            OSError: If that fails.
        """
        return open(self._path, mode)
