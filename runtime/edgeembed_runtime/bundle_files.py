"""Check that the files of a bundle are regular files inside its folder."""

import os
import stat
from pathlib import Path
from typing import IO

from edgeembed_runtime.errors import BundleError
from edgeembed_runtime.storage.files import Folder

_BLOBS = "blobs"
_SNAPSHOTS = "snapshots"


def check_inside(folder: Folder, name: str) -> None:
    """Check that no symbolic link makes a file of a bundle point outside the bundle's folder.

    A link within the folder is followed. So is one from a snapshot of huggingface_hub's cache
    (`snapshots/REVISION/NAME`) into the files of the same cache entry (`blobs/`), because that is how the cache
    stores every repository.

    Args:
        folder: The bundle.
        name: The file's path within the folder, with forward slashes; the file need not exist.

    Raises:
        BundleError: If a link points outside.
    """
    if not isinstance(folder, Path) or not _has_link(folder, name):
        return
    root, target = Path(os.path.realpath(folder)), Path(os.path.realpath(folder / name))
    allowed = [root]
    if root.parent.name == _SNAPSHOTS:
        allowed.append(root.parent.parent / _BLOBS)
    if not any(target.is_relative_to(place) for place in allowed):
        raise BundleError(
            f"{folder}: {name} is a symbolic link that leads out of the folder, expected a file inside it; "
            "copy the bundle with its links resolved (cp -rL)"
        )


def open_regular(file: Folder) -> IO[bytes]:
    """Open a file for reading, unless it is a pipe, a socket or a device, on which reading might block forever.

    Args:
        file: The file.

    Returns:
        The opened file.

    Raises:
        OSError: If it cannot be opened, or is not a regular file.
    """
    if not isinstance(file, Path):
        return file.open("rb")
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(None, "it is not a regular file")
    return os.fdopen(descriptor, "rb")


def _has_link(folder: Path, name: str) -> bool:
    """Return whether the file, or a folder on the way to it inside the bundle, is a symbolic link."""
    path = folder
    for part in name.split("/"):
        path /= part
        try:
            if path.is_symlink():
                return True
        except OSError:  # a name too long for the system
            return False
    return False
