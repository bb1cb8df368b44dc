"""Files and folders that survive a power failure once these functions return."""

import errno
import os
from pathlib import Path

# What a system or a file system answers that cannot sync a folder.
_CANNOT_SYNC_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EACCES}


def sync(path: Path) -> None:
    """Write a file's content, or a folder's list of names, to the disk.

    Raises:
        OSError: If that fails; a file system that cannot sync folders is no failure.
    """
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":  # where it cannot be opened
        return
    try:
        descriptor = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)  # Windows syncs only what may be written
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if not is_folder or error.errno not in _CANNOT_SYNC_FOLDERS:
            raise


def sync_tree(folder: Path) -> None:
    """Sync every file in a folder, every folder below it, and the folder itself.

    Raises:
        OSError: If that fails.
    """
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


def make_folder(path: Path) -> None:
    """Create a folder and those above it that are missing, each of them synced.

    Raises:
        OSError: If one of them cannot be created.
    """
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync(path.parent)
