"""Locks that the system releases when their process ends: `flock` on POSIX systems, `msvcrt.locking` on Windows."""

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.files import check_is_local, make_folder

if sys.platform == "win32":
    import msvcrt
elif sys.platform != "emscripten":
    import fcntl

# Errors of file systems without locks.
_UNSUPPORTED = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL}
_POLL_INTERVAL_S = 0.02
# Windows cannot open a file that is being removed. If this lasts longer, the folder is not writable.
_MAX_REMOVAL_S = 2.0


class LockingUnsupportedError(OSError):
    """Raised when a file system has no locks."""


class LockedError(InputError):
    """Raised when other processes hold a lock for too long."""


def take_lock(path: Path, *, create: bool) -> int | None:
    """Lock a file without waiting.

    Args:
        path: The lock file.
        create: Whether to create the file if it is missing.

    Returns:
        A descriptor for `release_lock`, or None if another process or thread holds the lock.

    Raises:
        LockingUnsupportedError: If the file system has no locks.
        OSError: If the file is missing and `create` is False, or cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o666)
    try:
        # The previous holder may have removed the file after it was opened here; locking it then excludes nobody.
        if _try_lock(descriptor) and _is_same_file(path, descriptor):
            return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def release_lock(descriptor: int) -> None:
    """Release a lock of `take_lock`, also for forked processes that inherited the descriptor."""
    try:
        _unlock(descriptor)
    finally:
        os.close(descriptor)


def lock_file(path: Path) -> Path:
    """Return the path of the lock file of `locked`."""
    return path.with_name(f".{path.name}.lock")


@contextlib.contextmanager
def locked(path: Path, *, wait_s: float = 600) -> Iterator[None]:
    """Wait for the lock of a file or folder, and hold it during the block.

    The lock is a file `.NAME.lock` beside `path`, removed afterwards. A process that dies releases its lock. On a file
    system without locks the block runs without one.

    Args:
        path: The file or folder to lock. Missing parent folders are created.
        wait_s: The maximum time to wait, in seconds.

    Raises:
        InputError: If the lock file cannot be written.
        LockedError: If other processes hold the lock for too long.
    """
    check_is_local(path)
    lock = lock_file(path)
    try:
        make_folder(path.parent)
        descriptor = _wait_for(lock, path, wait_s)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot write {path}: {reason}; choose another place or make room there") from error
    try:
        yield
    finally:
        if descriptor is not None:
            _remove_and_release(lock, descriptor)


def _wait_for(lock: Path, path: Path, wait_s: float) -> int | None:
    """Return the descriptor of the locked file, or None on a file system without locks."""
    deadline = time.monotonic() + wait_s
    denied_since: float | None = None
    while True:
        try:
            descriptor = take_lock(lock, create=True)
        except LockingUnsupportedError:
            lock.unlink(missing_ok=True)
            return None
        except PermissionError:
            denied_since = denied_since or time.monotonic()
            if sys.platform != "win32" or time.monotonic() - denied_since > _MAX_REMOVAL_S:
                raise
            descriptor = None
        else:
            denied_since = None
        if descriptor is not None:
            return descriptor
        if time.monotonic() > deadline:
            raise LockedError(
                f"{path} has been locked by other processes for {wait_s:.0f} s, expected them to finish; try again"
            )
        time.sleep(_POLL_INTERVAL_S)


def _remove_and_release(lock: Path, descriptor: int) -> None:
    if sys.platform != "win32":  # Windows cannot remove an open file
        with contextlib.suppress(OSError):
            lock.unlink()
    release_lock(descriptor)
    if sys.platform == "win32":
        with contextlib.suppress(OSError):
            lock.unlink()


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))  # noqa: PTH116 - beside fstat
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int) -> bool:
    if sys.platform == "emscripten":  # Pyodide: the files are those of one page
        raise LockingUnsupportedError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}:
            return False
        if error.errno in _UNSUPPORTED:
            raise LockingUnsupportedError(error.errno, error.strerror) from error
        raise
    return True


def _unlock(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # closing the file releases the lock too
        if sys.platform == "win32":
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        elif sys.platform != "emscripten":
            fcntl.flock(descriptor, fcntl.LOCK_UN)
