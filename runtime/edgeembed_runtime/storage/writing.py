"""Files and folders that appear whole or not at all: written beside, synced, renamed."""

import contextlib
import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from edgeembed_runtime.errors import InputError

# What a system or a file system says that cannot exchange two names at once.
_CANNOT_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
_RELATIVE_TO_WORKING_FOLDER = -100
_EXCHANGE = 2


def refuse_existing(path: Path, *, force: bool, marker: str | None = None) -> None:
    """Refuse to overwrite, before any work is done.

    Args:
        path: Where a result is to be written.
        force: Whether an existing result may be replaced.
        marker: A file that such folders hold: a folder without it is never replaced, so that `force` with a
            mistyped path (a home directory, say) destroys nothing. None replaces whatever is there.

    Raises:
        InputError: If `path` exists and may not be replaced, or is no path.
    """
    if not _exists(path):
        return
    if not force:
        raise InputError(
            f"{path} exists already, expected a new path; choose another, or replace it with force=True (--force)"
        )
    if marker is not None and (not path.is_dir() or (any(path.iterdir()) and not (path / marker).is_file())):
        raise InputError(f"{path} holds no {marker}, so it is not replaced; choose another path or remove it")


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
def new_folder(path: Path, *, force: bool = False, marker: str | None = None) -> Iterator[Path]:
    """Give a folder to fill, and move it to `path` once the block ends without an error.

    Where a folder is replaced on Linux or macOS, whoever opens `path` sees the old one or the new one at any time, even
    if the process is killed. On Windows, and on file systems that cannot exchange two names (NFS, for one), there is
    nothing at `path` for a moment; a process killed right then leaves the old one in a folder beside it, `.NAME.old.`
    and some letters.

    Args:
        path: Where the folder is to appear.
        force: Whether an existing folder is replaced.
        marker: As for `refuse_existing`.

    Yields:
        A temporary folder beside `path`; it is removed if the block raises, Ctrl-C included.

    Raises:
        InputError: If `path` exists and may not be replaced, or cannot be written.
    """
    refuse_existing(path, force=force, marker=marker)
    beside = _temporary_folder(path)
    try:
        with _body_errors(path):
            mode = _usual_mode(beside)
            yield beside
            for file in beside.rglob("*"):
                if file.is_file():
                    file.chmod(mode & 0o666)  # some libraries write for the owner alone
                _sync(file)
            beside.chmod(mode)
            _replace(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextlib.contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a file name to write to, and move the file to `path` once the block ends without an error.

    Args:
        path: Where the file is to appear.
        force: Whether an existing file is replaced.

    Yields:
        A name in a temporary folder beside `path`; it is removed if the block raises.

    Raises:
        InputError: If `path` exists and `force` is not set, or cannot be written.
    """
    refuse_existing(path, force=force)
    refuse_special(path)
    beside = _temporary_folder(path)
    try:
        with _body_errors(path):
            yield beside / path.name
            _sync(beside / path.name)
            (beside / path.name).replace(path)
            _sync(path.parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path.is_symlink()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot write {str(path)!r}: {reason}; choose another path") from error
    return True


def _usual_mode(folder: Path) -> int:
    """Give who may do what with a new folder. Setting the umask, to read it, would change it for other threads."""
    probe = folder / "probe"
    probe.mkdir()
    mode = probe.stat().st_mode & 0o777
    probe.rmdir()
    return mode


def _temporary_folder(path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise _cannot_write(path, error) from error


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


def _replace(source: Path, target: Path) -> None:
    if not target.exists():
        source.rename(target)
    elif _exchange(source, target):
        if source.is_symlink() or not source.is_dir():  # else it is removed where it was made
            source.unlink()
    else:
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
        try:
            target.rename(old / target.name)
            source.rename(target)
        except BaseException:
            if not target.exists():
                (old / target.name).rename(target)
            raise
        finally:
            shutil.rmtree(old)
    _sync(target.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Give each of two paths what the other led to, at once; False, and nothing is done, where that cannot be done."""
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


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # it cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)  # Windows syncs what may be written
    try:
        os.fsync(descriptor)
    except OSError:  # some file systems cannot sync a folder
        if not path.is_dir():
            raise
    finally:
        os.close(descriptor)
