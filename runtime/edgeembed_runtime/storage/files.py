"""Look up, read and hash files, and sync what was written to the disk.

`storage.atomic` is a module of its own: an encoder writes nothing and starts faster without it.
"""

import errno
import os
import string
import sys
from typing import TYPE_CHECKING

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.folder import Folder

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK_BYTES = 1 << 20
_SCHEME_CHARACTERS = f"{string.ascii_letters}{string.digits}+-."
# Errors of systems and file systems that cannot sync a folder.
_CANNOT_SYNC_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EACCES}


def is_dir(path: Folder) -> bool:
    """Return whether the path is a folder; False for a path that the system cannot look up (too long, for example)."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_file(path: Folder) -> bool:
    """Return whether the path is a file; False for a path that the system cannot look up."""
    try:
        return path.is_file()
    except OSError:
        return False


def size_bytes(file: Folder) -> int:
    """Return the size of a file in bytes."""
    if isinstance(file, os.PathLike):
        return os.stat(file).st_size  # noqa: PTH116
    with file.open("rb") as opened:
        return int(opened.seek(0, os.SEEK_END))


def sha256(file: Folder) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    import hashlib  # costs 3 MB for OpenSSL, which a built-in encoder does without

    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_of(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    import hashlib

    return hashlib.sha256(content).hexdigest()


def sync(path: "Path") -> None:
    """Flush a file's content, or a folder's list of entries, to the disk.

    Raises:
        OSError: If that fails. A file system that cannot sync folders is not a failure.
    """
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":  # Windows cannot open a folder
        return
    try:
        descriptor = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)  # Windows syncs only writable files
        try:
            _flush(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if not is_folder or error.errno not in _CANNOT_SYNC_FOLDERS:
            raise


def _flush(descriptor: int) -> None:
    if sys.platform == "darwin":  # fsync of macOS leaves the data in the drive's cache
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:  # a file system that cannot, such as a network share
            pass
        else:
            return
    os.fsync(descriptor)


def sync_tree(folder: "Path") -> None:
    """Sync a folder and everything below it.

    Raises:
        OSError: If that fails.
    """
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


def check_is_local(path: "Path") -> None:
    """Raise InputError if the path of an output is a URL, of which pathlib would make a folder named `s3:`."""
    scheme, _, rest = str(path).partition(":")
    is_scheme = len(scheme) > 1 and scheme[0].isalpha() and not scheme.strip(_SCHEME_CHARACTERS)
    if is_scheme and rest.startswith(("/", "\\", ":")):
        raise InputError(f"{path} is a URL, expected a path on this machine; write there, and copy the result")


def make_folder(path: "Path") -> None:
    """Create a folder and its missing parents, and sync each of them.

    Raises:
        OSError: If one of them cannot be created.
    """
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync(path.parent)
