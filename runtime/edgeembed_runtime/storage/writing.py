"""Files and folders that appear whole or not at all: written beside the target, synced, renamed."""

import contextlib
import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.ownership import FolderKind
from edgeembed_runtime.storage.syncing import make_folder, sync, sync_tree
from edgeembed_runtime.storage.temporary import TemporaryFolder, is_there, remove_stale

# What a system or a file system answers that cannot exchange two names at once.
_CANNOT_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
_RELATIVE_TO_WORKING_FOLDER = -100
_EXCHANGE = 2


def refuse_existing(path: Path, *, force: bool, kind: FolderKind | None = None) -> None:
    """Refuse to overwrite, before any work is done.

    What a dead process left while it wrote to `path` is removed first, or undone if it had moved the content away.

    Args:
        path: Where a result is to be written.
        force: Whether an existing result may be replaced.
        kind: The kind of folder that is to be written. Another folder, or one with a file that its manifest does not
            list, is never replaced, so that `force` with a wrong path destroys nothing. None for a file.

    Raises:
        InputError: If `path` exists and may not be replaced, or is no path.
    """
    _exists(path)  # raises for what is no path
    target = path if kind is None else resolve_link(path)
    remove_stale(target)
    _refuse(target, force=force, kind=kind)


def refuse_special(path: Path) -> None:
    """Refuse to put a file where a folder, a device or a pipe is: renaming a file there would remove those.

    Args:
        path: Where a file is to be written.

    Raises:
        InputError: If something other than a regular file is there.
    """
    if _exists(path) and not path.is_file() and not path.is_symlink():
        kind = "a folder" if path.is_dir() else "no regular file"
        raise InputError(f"{path} is {kind}, expected a new path or a file to replace; choose another")


@contextlib.contextmanager
def new_folder(path: Path, *, kind: FolderKind, force: bool = False) -> Iterator[Path]:
    """Give a folder to fill, and move it to `path` once the block ends without an error.

    Where a folder is replaced on Linux or macOS, whoever opens `path` sees the old one or the new one at any time, even
    if the process is killed. On Windows, and on file systems that cannot exchange two names (NFS, for one), there is
    nothing at `path` for a moment; if the process is killed right then, the next one that writes there puts the old
    folder back first. The old folder is deleted only after the new one took its place.

    Args:
        path: Where the folder is to appear. A link to a folder stays, and the folder that it leads to is replaced.
        kind: The kind of folder that is written.
        force: Whether an existing folder of this kind is replaced, if its manifest lists all that is in it. That is
            checked before the block and again after it.

    Yields:
        An empty folder in a temporary one beside `path`, which is removed if the block raises, Ctrl-C included. If the
        process is killed, the next one that writes to `path` removes it.

    Raises:
        InputError: If `path` exists and may not be replaced, or cannot be written.
    """
    path = resolve_link(path)
    refuse_existing(path, force=force, kind=kind)
    with _temporary_folder(path) as temporary:
        temporary.new.mkdir()
        mode = temporary.new.stat().st_mode & 0o777  # what the umask allows a new folder
        yield temporary.new
        for file in temporary.new.rglob("*"):
            if file.is_file():
                file.chmod(mode & 0o666)  # some libraries write for the owner alone
        temporary.new.chmod(mode)
        sync_tree(temporary.new)
        _refuse(path, force=force, kind=kind)
        _move_in(temporary, path)
        sync(path.parent)


@contextlib.contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a file name to write to, and move the file to `path` once the block ends without an error.

    Args:
        path: Where the file is to appear.
        force: Whether an existing file is replaced.

    Yields:
        A name in a temporary folder beside `path`; it is removed if the block raises, or, if the process is killed, by
        the next one that writes to `path`.

    Raises:
        InputError: If `path` exists and `force` is not set, or cannot be written.
    """
    refuse_existing(path, force=force)
    refuse_special(path)
    with _temporary_folder(path) as temporary:
        file = temporary.path / path.name
        yield file
        sync(file)
        _refuse(path, force=force, kind=None)
        refuse_special(path)
        file.replace(path)
        sync(path.parent)


def resolve_link(path: Path) -> Path:
    """Return the folder that a link leads to; a path that is no link to a folder stays what it is."""
    return path.resolve() if _exists(path) and path.is_symlink() and path.is_dir() else path


def _refuse(path: Path, *, force: bool, kind: FolderKind | None) -> None:
    if not _exists(path):
        return
    if kind is not None and not path.is_dir():
        raise InputError(f"{path} is no folder, expected a new path; choose another")
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
    """Give a temporary folder beside `path`, and remove it in the end; errors in writing there become an InputError."""
    try:
        make_folder(path.parent)
        temporary = TemporaryFolder(path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    try:
        with _body_errors(path):
            yield temporary
    finally:
        temporary.remove()


@contextlib.contextmanager
def _body_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.filename is not None and not _is_below(Path(os.fsdecode(error.filename)), path.parent):
            raise
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> InputError:
    reason = error.strerror or str(error)
    return InputError(f"cannot write {path}: {reason}; choose another place or make room there")


def _is_below(path: Path, folder: Path) -> bool:
    return path.absolute().is_relative_to(folder.absolute())


def _move_in(temporary: TemporaryFolder, target: Path) -> None:
    """Move the new folder to the target. The old one is in the temporary folder afterwards."""
    if not is_there(target):
        temporary.new.rename(target)
    elif not _exchange(temporary.new, target):
        temporary.keeps_old = True  # before the move, which an interrupt may follow at once
        target.rename(temporary.old)
        temporary.new.rename(target)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange what two paths lead to, at once. Return False, with nothing done, where that is not supported."""
    names = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "linux":
            here = _RELATIVE_TO_WORKING_FOLDER
            failed = ctypes.CDLL(None, use_errno=True).renameat2(here, names[0], here, names[1], _EXCHANGE)
        elif sys.platform == "darwin":
            failed = ctypes.CDLL(None, use_errno=True).renamex_np(*names, _EXCHANGE)
        else:
            return False
    except (AttributeError, OSError):  # an old or a small system
        return False
    if failed and (number := ctypes.get_errno()) not in _CANNOT_EXCHANGE:
        raise OSError(number, os.strerror(number), str(other))
    return not failed
