"""Files and folders that appear whole or not at all: written beside, synced, renamed."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from edgeembed_runtime.errors import InputError


def refuse_existing(path: Path, *, force: bool, marker: str | None = None) -> None:
    """Refuse to overwrite, before any work is done.

    Args:
        path: Where a result is to be written.
        force: Whether an existing result may be replaced.
        marker: A file that such folders hold: a folder without it is never replaced, so that `force` with a
            mistyped path (a home directory, say) destroys nothing. None replaces whatever is there.

    Raises:
        InputError: If `path` exists and may not be replaced.
    """
    if not path.exists():
        return
    if not force:
        raise InputError(
            f"{path} exists already, expected a new path; choose another, or replace it with force=True (--force)"
        )
    if marker is not None and (not path.is_dir() or (any(path.iterdir()) and not (path / marker).is_file())):
        raise InputError(f"{path} holds no {marker}, so it is not replaced; choose another path or remove it")


@contextlib.contextmanager
def new_folder(path: Path, *, force: bool = False, marker: str | None = None) -> Iterator[Path]:
    """Give a folder to fill, and move it to `path` once the block ends without an error.

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
            yield beside
            for file in beside.rglob("*"):
                if file.is_file():
                    file.chmod(0o644)  # some libraries write for the owner alone
                _sync(file)
            beside.chmod(0o755)
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
    beside = _temporary_folder(path)
    try:
        with _body_errors(path):
            yield beside / path.name
            _sync(beside / path.name)
            (beside / path.name).replace(path)
            _sync(path.parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


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
    if target.exists():
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
    else:
        source.rename(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # some file systems cannot sync a folder
        if not path.is_dir():
            raise
    finally:
        os.close(descriptor)
