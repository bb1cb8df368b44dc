"""Write files and folders atomically: in a temporary folder beside the target, synced, then renamed."""

import contextlib
import ctypes
import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.file_lock import lock_file
from edgeembed_runtime.storage.files import check_is_local, is_dir, is_file, make_folder, sync, sync_tree
from edgeembed_runtime.storage.folder_kind import FolderKind
from edgeembed_runtime.storage.temporary_folder import TemporaryFolder, move, path_exists, remove_stale

# Errors of systems and file systems that cannot exchange two paths atomically.
_EXCHANGE_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
# How long to wait for a folder that another process replaces: a second in all.
_MAX_WAITS = 50
_WAIT_S = 0.02
# Constants of renameat2 and renamex_np.
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def check_output_path(path: Path, *, force: bool, kind: FolderKind | None = None) -> None:
    """Raise InputError if an output path is taken, before any work is done.

    What a killed process left behind while writing to `path` is cleaned up first.

    Args:
        path: The output path.
        force: Whether an existing output may be replaced.
        kind: The kind of output folder; None for a file. A folder of another kind, or one with a file that its manifest
            does not list, is never replaced, so that `force` with a wrong path destroys nothing.

    Raises:
        InputError: If `path` exists and may not be replaced, is not a valid path, is a URL, or names the folder of a
            model and is not UTF-8.
    """
    check_is_local(path)
    if kind is not None and kind.is_model:
        check_is_utf8(path)
    _exists(path)  # raises for an invalid path
    target = path if kind is None else resolve_folder_link(path)
    remove_stale(target)
    _check_replaceable(target, force=force, kind=kind)


def check_is_utf8(path: Path) -> None:
    """Raise InputError if a path is not UTF-8, which libraries that write and read models need."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{path} is not UTF-8 in this locale, expected a path that is, which libraries of models need; rename it, "
            "or choose another one"
        ) from error


def check_output_file(path: Path) -> None:
    """Raise InputError if a folder, a device or a pipe is at the path of an output file.

    Args:
        path: The path of the output file.

    Raises:
        InputError: If something other than a regular file is there.
    """
    if _exists(path) and not path.is_file() and not path.is_symlink():
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise InputError(f"{path} is {kind}, expected a new path or a file to replace; choose another")


@contextlib.contextmanager
def atomic_folder(path: Path, *, kind: FolderKind, force: bool = False) -> Iterator[Path]:
    """Yield an empty folder to fill, and move it to `path` if the block ends without an error.

    On Linux and macOS a folder is replaced atomically: other processes see the old or the new one at any time, even if
    this process is killed. On Windows, and on file systems that cannot exchange two paths (NFS, for example), `path` is
    missing for a moment; if the process is killed at that moment, the next writer restores the old folder first. The
    old folder is deleted only after the new one is in place. Windows replaces no folder of which a file is open.

    A folder and files that are replaced keep their permissions and group, and a new file beside them gets no permission
    that one of them lacks. Otherwise the umask decides. Until then, only the owner can read what is written.

    Args:
        path: The path of the output folder. If it is a link to a folder, the link's target is replaced.
        kind: The kind of folder that is written.
        force: Whether an existing folder of this kind is replaced if its manifest lists everything in it. This is
            checked before the block and again after it.

    Yields:
        An empty folder in a temporary folder beside `path`. It is removed if the block raises, Ctrl-C included; if the
        process is killed, the next writer to `path` removes it.

    Raises:
        InputError: If `path` exists and may not be replaced, or cannot be written.
    """
    path = resolve_folder_link(path)
    check_output_path(path, force=force, kind=kind)
    with _temporary_folder(path) as temporary:
        temporary.new.mkdir()
        yield temporary.new
        _set_permissions(temporary.new, path)
        sync_tree(temporary.new)
        _check_replaceable(path, force=force, kind=kind)
        _move_in(temporary, path)
        sync(path.parent)


@contextlib.contextmanager
def atomic_file(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path to write a file to, and move the file to `path` if the block ends without an error.

    A file that is replaced keeps its permissions and group.

    Args:
        path: The path of the output file.
        force: Whether an existing file is replaced.

    Yields:
        A path in a temporary folder beside `path`. It is removed if the block raises; if the process is killed, the
        next writer to `path` removes it.

    Raises:
        InputError: If `path` exists and `force` is not set, or cannot be written.
    """
    check_output_path(path, force=force)
    check_output_file(path)
    with _temporary_folder(path) as temporary:
        file = temporary.path / path.name
        yield file
        if path.is_file():
            status = path.stat()
            _grant(file, status.st_mode | 0o600, status.st_gid)
        sync(file)
        _check_replaceable(path, force=force, kind=None)
        check_output_file(path)
        move(file, path)
        sync(path.parent)


def wait_for_folder(path: Path) -> None:
    """Wait while another process replaces a folder, and restore the folder if that process died.

    Only where two paths cannot be exchanged atomically is a folder that is replaced missing for a moment.

    Args:
        path: The folder. A folder that nobody replaces need not exist.
    """
    for _ in range(_MAX_WAITS):
        if is_dir(path):
            return
        remove_stale(path)
        if is_dir(path) or not is_file(lock_file(path)):
            return
        time.sleep(_WAIT_S)


def resolve_folder_link(path: Path) -> Path:
    """Return the target of a link to a folder; return any other path unchanged.

    Raises:
        InputError: If the path ends without a name, like "." and "/": a folder is replaced as a whole, by its name.
    """
    if path.name in ("", ".."):
        raise InputError(f"the path is {str(path)!r}, expected one that ends with a name; write the folder's name")
    return path.resolve() if _exists(path) and path.is_symlink() and path.is_dir() else path


def _check_replaceable(path: Path, *, force: bool, kind: FolderKind | None) -> None:
    if not _exists(path):
        return
    if kind is not None and not path.is_dir():
        raise InputError(f"{path} is not a folder, expected a new path; choose another")
    obstacle = None if kind is None else kind.obstacle(path)
    if obstacle is not None:
        reason = f"{obstacle}, so it is not replaced" if force else f"exists already and {obstacle}"
        raise InputError(f"{path} {reason}; choose another path, or move what is there")
    if not force:
        raise InputError(
            f"{path} exists already, expected a new path; choose another, or replace it with force=True (--force)"
        )


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path.is_symlink()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot write {str(path)!r}: {reason}; choose another path") from error
    return True


@contextlib.contextmanager
def _temporary_folder(path: Path) -> Iterator[TemporaryFolder]:
    """Yield a temporary folder beside `path` and remove it afterwards; raise InputError if it cannot be written."""
    try:
        make_folder(path.parent)
        temporary = TemporaryFolder(path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    try:
        with _write_errors(path):
            yield temporary
    finally:
        temporary.remove()


@contextlib.contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Convert an OSError about the folder of `path` into an InputError."""
    try:
        yield
    except OSError as error:
        if error.filename is not None and not _is_below(Path(os.fsdecode(error.filename)), path.parent):
            raise
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> InputError:
    reason = error.strerror or str(error)
    remedy = "choose another place or make room there"
    if isinstance(error, PermissionError) and sys.platform == "win32":
        remedy = "close the programs that have it open, or choose another place"
    return InputError(f"cannot write {path}: {reason}; {remedy}")


def _is_below(path: Path, folder: Path) -> bool:
    return path.absolute().is_relative_to(folder.absolute())


def _set_permissions(new: Path, old: Path) -> None:
    """Copy the permissions of the folder that is replaced; if there is none, keep those that the umask allows."""
    status = (old if path_exists(old) else new).stat()
    shared = status.st_mode  # the permissions that the old folder and all files in it have
    for path in old.rglob("*"):
        if path.is_file():
            shared &= path.stat().st_mode
    for path in new.rglob("*"):
        replaced = old / path.relative_to(new)
        known = replaced.stat() if path_exists(replaced) and replaced.is_dir() == path.is_dir() else None
        mode, group = (known.st_mode, known.st_gid) if known else (status.st_mode, status.st_gid)
        if path.is_dir():
            _grant(path, mode | 0o700, group)
        else:  # some libraries write files that only the owner can read
            _grant(path, (mode if known else shared) & 0o666 | 0o600, group)
    _grant(new, status.st_mode | 0o700, status.st_gid)


def _grant(path: Path, mode: int, group: int) -> None:
    """Set permissions and the group that they are for; if this process cannot set the group, it gets none."""
    if path.stat().st_gid != group:
        try:
            os.chown(path, -1, group)
        except OSError:
            mode &= ~0o070
    path.chmod(stat.S_IMODE(mode))


def _move_in(temporary: TemporaryFolder, target: Path) -> None:
    """Move the new folder to the target, and the old one into the temporary folder."""
    if not path_exists(target):
        move(temporary.new, target)
    elif not _exchange(temporary.new, target):
        temporary.keeps_old = True  # before the move: an interrupt may follow it immediately
        move(target, temporary.old)
        move(temporary.new, target)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two paths atomically. Return False, without a change, where that is not supported."""
    paths = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "linux":
            arguments = (_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE)
            failed = ctypes.CDLL(None, use_errno=True).renameat2(*arguments)
        elif sys.platform == "darwin":
            failed = ctypes.CDLL(None, use_errno=True).renamex_np(*paths, _RENAME_EXCHANGE)
        else:
            return False
    except (AttributeError, OSError):  # the C library is too old or lacks the function
        return False
    if failed and (number := ctypes.get_errno()) not in _EXCHANGE_UNSUPPORTED:
        raise OSError(number, os.strerror(number), str(other))
    return not failed
