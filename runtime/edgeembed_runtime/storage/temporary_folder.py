"""Temporary folders beside a target, recognized as stale once their process is dead.

    .NAME.1a2b3c4d.tmp/
        edgeembed.lock    locked while the process lives
        new               the new folder (a new file has its own name instead)
        old               the old folder, where two paths cannot be exchanged atomically

While `new` exists and the target does not, `old` is the only copy of the target's content.
"""

import contextlib
import errno
import os
import re
import shutil
import stat
import sys
import time
from pathlib import Path

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.file_lock import LockingUnsupportedError, release_lock, take_lock

_LOCK = "edgeembed.lock"
_NEW = "new"
_OLD = "old"
# Windows cannot move what a program has open. Virus scanners and search indexers open new files for a moment.
_MOVE_WAIT_S = 5.0 if sys.platform == "win32" else 0.0
_MOVE_INTERVAL_S = 0.05
# Another process may remove a folder before its lock is taken, as that of a dead process.
_MAX_ATTEMPTS = 100


class TemporaryFolder:
    """A temporary folder beside a target.

    Args:
        target: The file or folder that is going to be written.

    Attributes:
        path: The folder.
        new: The path for the new folder.
        old: The path to which the target's old folder may be moved after setting `keeps_old`.
        keeps_old: Whether `old` may hold the only copy of the old folder, which `remove` must then restore or keep.

    Raises:
        OSError: If the folder cannot be created.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self.path, self._descriptor = _create(target)
        self.new = self.path / _NEW
        self.old = self.path / _OLD
        self.keeps_old = False

    def remove(self) -> None:
        """Remove the folder, after moving the old content back if the new content is not in place.

        Raises:
            InputError: If the old content could not be moved back. It is kept, and the message names its path.
        """
        try:
            if self.keeps_old:
                _restore(self.path, self._target)
            _remove_content(self.path)
        except OSError as error:
            raise InputError(
                f"cannot write {self._target}: {error.strerror or error}; its previous content is kept in {self.old}: "
                f"move it back to {self._target}"
            ) from error
        finally:
            if self._descriptor is not None:
                release_lock(self._descriptor)
        _remove_emptied(self.path)


def remove_stale(target: Path) -> None:
    """Remove the temporary folders that dead processes left beside a target, as far as possible.

    If such a process died while it replaced the target and the target is missing, restore the old content.
    """
    # Windows ignores the case of names.
    pattern = re.compile(rf"\.{re.escape(os.path.normcase(target.name))}\.[0-9a-f]{{8}}\.tmp")
    try:
        names = sorted(os.listdir(target.parent))  # noqa: PTH208 - names are enough
    except OSError:
        return
    for name in names:
        if not pattern.fullmatch(os.path.normcase(name)):
            continue
        with contextlib.suppress(OSError):
            _remove_if_stale(target.parent / name, target)


def move(source: Path, target: Path) -> None:
    """Rename a file or folder, replacing a file at the target.

    Raises:
        OSError: If that fails; on Windows, if a program has one of the files open for more than five seconds.
    """
    deadline = time.monotonic() + _MOVE_WAIT_S
    while True:
        try:
            source.replace(target)
        except PermissionError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_MOVE_INTERVAL_S)
        else:
            return


def path_exists(path: Path) -> bool:
    """Return whether a path exists; True for a broken link.

    Raises:
        OSError: If the path cannot be looked up; `Path.exists` would return False.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _create(target: Path) -> tuple[Path, int | None]:
    """Return a new folder and the descriptor of its lock (None on a file system without locks)."""
    for _ in range(_MAX_ATTEMPTS):
        folder = target.with_name(f".{target.name}.{os.urandom(4).hex()}.tmp")
        try:
            folder.mkdir(0o700)  # what is written here may replace something private
        except FileExistsError:
            continue
        try:
            descriptor = take_lock(folder / _LOCK, create=True)
        except LockingUnsupportedError:
            return folder, None
        except BaseException as error:
            if isinstance(error, FileNotFoundError) and not path_exists(folder):
                continue
            _remove_emptied(folder)
            raise
        if descriptor is not None:
            return folder, descriptor
    raise FileExistsError(errno.EEXIST, "other processes remove its temporary folders", str(target))


def _remove_if_stale(folder: Path, target: Path) -> None:
    if not stat.S_ISDIR(folder.lstat().st_mode):
        return
    try:
        descriptor = take_lock(folder / _LOCK, create=False)
    except FileNotFoundError:  # its process died before taking the lock or after removing the content
        folder.rmdir()
        return
    if descriptor is None:
        return
    try:
        _restore(folder, target)
        _remove_content(folder)
    finally:
        release_lock(descriptor)
    _remove_emptied(folder)


def _restore(folder: Path, target: Path) -> None:
    """Move the old content back to the target if the new content is not in place.

    Raises:
        OSError: If that fails, or another process put something else at the target.
    """
    old = folder / _OLD
    if path_exists(old) and path_exists(folder / _NEW):
        if path_exists(target):
            raise FileExistsError(errno.EEXIST, "another process put something else there", str(target))
        move(old, target)


def _remove_content(folder: Path) -> None:
    """Remove everything but the lock, as far as possible; a folder with a lock is removed by a later process."""
    with contextlib.suppress(OSError):
        for path in list(folder.iterdir()):
            if path.name == _LOCK:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _remove_emptied(folder: Path) -> None:
    """Remove a folder that holds nothing but its lock file."""
    with contextlib.suppress(OSError):
        if not any(path.name != _LOCK for path in folder.iterdir()):
            (folder / _LOCK).unlink(missing_ok=True)
            folder.rmdir()
