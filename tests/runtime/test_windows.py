"""Files behave as documented under the rules of Windows and macOS, simulated on Linux.

Windows neither moves nor removes what a program has open or mapped, and moves no folder that contains such a file.
"""

import contextlib
import errno
import fcntl
import io
import os
import pathlib
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Index, InputError, SemanticRanker
from edgeembed_runtime.cli.main import main
from edgeembed_runtime.index import npy
from edgeembed_runtime.index.folder import SavedStates
from edgeembed_runtime.interests.database import Database, _sqlite_uri
from edgeembed_runtime.storage import file_lock, files, temporary_folder
from edgeembed_runtime.storage.atomic import atomic_file, atomic_folder, check_output_path
from edgeembed_runtime.storage.file_lock import locked
from edgeembed_runtime.storage.folder_kind import FolderKind

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the rules of Windows are simulated with /proc")

_KIND = FolderKind("made.json", ("made_by",))
# Held during a call, so that no thread opens a file between the check and the call.
_CALL = threading.RLock()
_TEXTS = ["read the file", "the cat", "a network socket"]


def _open_files() -> Iterator[str]:
    """Yield the path of every file that this process has open or mapped."""
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the folder of this loop itself
            yield str(link.readlink())
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        yield line.partition("/")[2].join(["/", ""])


def _expect_closed(path: os.PathLike[str] | str) -> None:
    given = Path(path).absolute()
    for opened in map(Path, _open_files()):
        if opened.is_relative_to(given) and opened.is_file():
            raise PermissionError(errno.EACCES, "Access is denied", str(path))


def _closed_first(call: Callable[..., Any]) -> Callable[..., Any]:
    def checked(path: Any, *others: Any, **named: Any) -> Any:
        with _CALL:
            _expect_closed(path)
            if others and Path(others[0]).exists():
                if Path(others[0]).is_dir():
                    raise PermissionError(errno.EACCES, "Access is denied", str(path))
                _expect_closed(others[0])
            return call(path, *others, **named)

    return checked


def _uninterrupted(call: Callable[..., Any]) -> Callable[..., Any]:
    def locked_call(*given: Any, **named: Any) -> Any:
        with _CALL:
            return call(*given, **named)

    return locked_call


def _locking(descriptor: int, mode: int, _length: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_UN if mode == 0 else fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files behave as on Windows."""
    accessor = vars(pathlib).get("_NormalAccessor")  # pathlib of Python 3.10 has references of its own to os
    for name in ("rename", "replace", "unlink", "remove"):
        call = getattr(os, name)
        if accessor is not None and vars(accessor).get(name) is call:
            monkeypatch.setattr(accessor, name, staticmethod(_closed_first(call)))
        monkeypatch.setattr(os, name, _closed_first(call))
    monkeypatch.setattr(os, "open", _uninterrupted(os.open))
    monkeypatch.setattr(shutil, "_use_fd_functions", False)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os.path, "normcase", str.lower)
    monkeypatch.setattr(file_lock, "msvcrt", SimpleNamespace(locking=_locking, LK_UNLCK=0, LK_NBLCK=2), raising=False)
    monkeypatch.setattr(npy, "_MAPS_FILES", False)
    monkeypatch.setattr(temporary_folder, "_MOVE_WAIT_S", 0.1)
    monkeypatch.setattr(temporary_folder, "_MOVE_INTERVAL_S", 0.01)


def _save(path: Path, content: str) -> None:
    with atomic_folder(path, kind=_KIND, force=True) as folder:
        (folder / "file").write_text(content, encoding="utf-8")
        _KIND.write_manifest(folder, {"made_by": "a test"})


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))  # noqa: PTH208 - hidden names count


def test_folder_is_replaced(tmp_path: Path, windows: None) -> None:
    for content in ("old", "new"):
        _save(tmp_path / "out", content)
    assert (tmp_path / "out" / "file").read_text(encoding="utf-8") == "new"
    assert _names(tmp_path) == ["out"]


def test_folder_with_an_open_file_is_kept(tmp_path: Path, windows: None) -> None:
    _save(tmp_path / "out", "old")
    with (
        (tmp_path / "out" / "file").open(encoding="utf-8"),
        pytest.raises(InputError, match="close the programs that have it open") as caught,
    ):
        _save(tmp_path / "out", "new")
    assert "\n" not in str(caught.value)
    assert (tmp_path / "out" / "file").read_text(encoding="utf-8") == "old"
    assert _names(tmp_path) == ["out"]


def test_open_file_is_kept(tmp_path: Path, windows: None) -> None:
    target = tmp_path / "report.json"
    target.write_text("old", encoding="utf-8")
    with (
        target.open(encoding="utf-8"),
        pytest.raises(InputError, match="close the programs"),
        atomic_file(target, force=True) as file,
    ):
        file.write_text("new", encoding="utf-8")
    assert target.read_text(encoding="utf-8") == "old"
    assert _names(tmp_path) == ["report.json"]


def test_moving_waits_for_a_scanner_that_has_the_file_open(
    tmp_path: Path, windows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporary_folder, "_MOVE_WAIT_S", 60)
    _save(tmp_path / "out", "old")
    scanner = (tmp_path / "out" / "file").open(encoding="utf-8")
    threading.Timer(0.05, scanner.close).start()
    _save(tmp_path / "out", "new")
    assert (tmp_path / "out" / "file").read_text(encoding="utf-8") == "new"
    assert _names(tmp_path) == ["out"]


@pytest.mark.parametrize("precision", ["float32", "binary"])
def test_index_is_saved_over_itself_while_others_have_it_open(
    tmp_path: Path, encoder: Encoder, windows: None, precision: Any
) -> None:
    folder = tmp_path / "index"
    Index.build(encoder, _TEXTS, precision=precision).save(folder)
    reader, writer = (Index.open(folder, encoder) for _ in range(2))
    writer.add(["open a line"])
    writer.save(folder, force=True)
    assert len(Index.open(folder, encoder)) == 4
    assert len(reader.search("the cat")) == 3
    assert _names(tmp_path) == ["index"]


def test_arrays_are_read_only_on_every_system(tmp_path: Path, windows: None) -> None:
    npy.write_array(tmp_path / "a.npy", np.ones((2, 3), dtype=np.float32))
    array = npy.MappedArrays().map(tmp_path / "a.npy", "<f4", (2, 3))
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 2


def test_threads_add_to_one_index_without_losing_documents(tmp_path: Path, encoder: Encoder, windows: None) -> None:
    folder = tmp_path / "index"
    Index.build(encoder, _TEXTS).save(folder)
    threads = [threading.Thread(target=Index.append_to, args=(folder, ["a line"], encoder)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Index.open(folder, encoder)) == 7
    assert _names(tmp_path) == ["index"]


def test_old_folder_is_restored_for_a_writer_that_spells_its_name_in_another_case(
    tmp_path: Path, windows: None
) -> None:
    _save(tmp_path / "Out", "old")
    _leave_half_replaced(tmp_path / "Out")
    check_output_path(tmp_path / "out", force=True, kind=_KIND)
    assert _names(tmp_path) == ["out"]
    assert (tmp_path / "out" / "file").read_text(encoding="utf-8") == "old"


def _leave_half_replaced(folder: Path) -> Path:
    """Leave an index as a process does that is killed between two moves; return where it is."""
    left = folder.with_name(f".{folder.name}.0123abcd.tmp")
    (left / "new").mkdir(parents=True)
    (left / "edgeembed.lock").touch()
    return folder.rename(left / "old")


def test_reader_restores_an_index_whose_writer_was_killed(tmp_path: Path, encoder: Encoder, windows: None) -> None:
    folder = tmp_path / "index"
    Index.build(encoder, _TEXTS).save(folder)
    _leave_half_replaced(folder)
    assert len(Index.open(folder, encoder)) == 3
    assert _names(tmp_path) == ["index"]


def test_reader_waits_for_a_writer_that_replaces_the_index(tmp_path: Path, encoder: Encoder) -> None:
    folder, elsewhere = tmp_path / "index", tmp_path / "elsewhere"
    Index.build(encoder, _TEXTS).save(folder)
    with locked(folder):
        folder.rename(elsewhere)
        threading.Timer(0.05, elsewhere.rename, [folder]).start()
        assert len(Index.open(folder, encoder)) == 3


def test_changes_are_noticed_however_the_folder_is_spelled(tmp_path: Path, encoder: Encoder) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")  # as "Real" is one for "real" on macOS
    folder = tmp_path / "real" / "index"
    assert not SavedStates({tmp_path / "alias" / "index": "0"}).is_outdated(folder)
    Index.build(encoder, _TEXTS).save(folder)
    assert SavedStates({tmp_path / "alias" / "index": "0"}).is_outdated(folder)
    assert not SavedStates({tmp_path / "other" / "index": "0"}).is_outdated(folder)


def test_folder_that_cannot_be_written_is_reported_soon(
    tmp_path: Path, windows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(path: Any, *_: Any) -> int:
        raise PermissionError(errno.EACCES, "Access is denied", str(path))

    monkeypatch.setattr(file_lock, "_MAX_REMOVAL_S", 0.05)
    monkeypatch.setattr(os, "open", deny)
    with pytest.raises(InputError, match="Access is denied"), locked(tmp_path / "index"):
        pytest.fail("the block ran")


def test_lock_file_that_is_being_removed_is_waited_for(
    tmp_path: Path, windows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    os_open, calls = os.open, []

    def deny_twice(path: Any, *given: Any) -> int:
        calls.append(path)
        if len(calls) <= 2:
            raise PermissionError(errno.EACCES, "Access is denied", str(path))
        return os_open(path, *given)

    monkeypatch.setattr(os, "open", deny_twice)
    with locked(tmp_path / "index"):
        assert _names(tmp_path) == [".index.lock"]
    assert _names(tmp_path) == []


def test_path_that_is_too_long_for_a_lock_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os_open = os.open

    def deny_locks(path: Any, *given: Any, **named: Any) -> int:
        if Path(path).name == "edgeembed.lock":
            raise FileNotFoundError(errno.ENOENT, "The system cannot find the path specified", str(path))
        return os_open(path, *given, **named)

    monkeypatch.setattr(os, "open", deny_locks)
    with pytest.raises(InputError, match="cannot find the path"), atomic_folder(tmp_path / "out", kind=_KIND):
        pytest.fail("the block ran")
    assert _names(tmp_path) == []


def test_interests_are_stored(tmp_path: Path, encoder: Encoder, windows: None) -> None:
    ranker = SemanticRanker(encoder, store=tmp_path / "me.db")
    ranker.like("the cat")
    assert len(SemanticRanker(encoder, store=tmp_path / "me.db").centers()) == 1
    assert _names(tmp_path) == ["me.db"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (PurePosixPath("/home/a b/me.db"), "file:///home/a%20b/me.db"),
        (PureWindowsPath(r"C:\Users\a b\me.db"), "file:///C:/Users/a%20b/me.db"),
        (PureWindowsPath(r"\\server\share\me?.db"), "file:////server/share/me%3F.db"),
    ],
)
def test_uris_of_sqlite_have_no_host(path: PurePosixPath | PureWindowsPath, uri: str) -> None:
    assert _sqlite_uri(path) == uri


def test_devices_are_never_replaced(encoder: Encoder) -> None:
    device = Path(os.devnull)  # on Windows, every folder has one of these names
    with pytest.raises(InputError, match="not a regular file"), atomic_file(device, force=True):
        pytest.fail("the block ran")
    with pytest.raises(InputError, match="is not a folder"), atomic_folder(device, kind=_KIND, force=True):
        pytest.fail("the block ran")
    with pytest.raises(InputError, match="is not a file"):
        SemanticRanker(encoder, store=device)


def test_closed_pipe_ends_a_command_without_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def closed(_text: str) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    output = io.StringIO()
    monkeypatch.setattr(output, "write", closed)
    monkeypatch.setattr(sys, "stdout", output)
    assert main(["info", "--json"]) == 2
    monkeypatch.setattr(sys, "platform", "win32")
    assert main(["info", "--json"]) == 141
    assert capsys.readouterr().err.count("error: ") == 1


@pytest.mark.parametrize("supported", [True, False])
def test_macos_flushes_the_cache_of_the_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, supported: bool
) -> None:
    flushed: list[str] = []

    def full_sync(_descriptor: int, command: int) -> None:
        assert command == 51
        if not supported:
            raise OSError(errno.ENOTSUP, "not supported")
        flushed.append("drive")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full_sync)
    monkeypatch.setattr(os, "fsync", lambda _: flushed.append("system"))
    monkeypatch.setattr(sys, "platform", "darwin")
    files.sync(tmp_path)
    assert flushed == ["drive" if supported else "system"]


def test_sqlite_flushes_the_cache_of_the_drive(tmp_path: Path) -> None:
    with Database(tmp_path / "me.db", create=True).transaction("write") as connection:
        assert connection.execute("PRAGMA fullfsync").fetchone() == (1,)
