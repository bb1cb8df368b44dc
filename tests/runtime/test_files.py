"""Files and folders appear completely or not at all."""

import ctypes
import errno
import hashlib
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace

import pytest
from edgeembed_runtime import InputError
from edgeembed_runtime.storage import atomic
from edgeembed_runtime.storage.atomic import atomic_file, atomic_folder, check_output_path
from edgeembed_runtime.storage.file_lock import locked
from edgeembed_runtime.storage.files import sha256
from edgeembed_runtime.storage.folder_kind import FolderKind

_KIND = FolderKind("made.json", ("made_by",))


def new_folder_of_kind(path: Path, *, force: bool = False) -> AbstractContextManager[Path]:
    return atomic_folder(path, kind=_KIND, force=force)


def _save(path: Path, *names: str, force: bool = False) -> None:
    with atomic_folder(path, kind=_KIND, force=force) as folder:
        for name in names:
            (folder / name).write_text(name, encoding="utf-8")
        _KIND.write_manifest(folder, {"made_by": "a test"})


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))  # noqa: PTH208 - hidden names count


def test_atomic_folder_appears_when_the_block_ends(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "deep" / "out", kind=_KIND) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "a").write_text("1", encoding="utf-8")
        assert not (tmp_path / "deep" / "out").exists()
    assert (tmp_path / "deep" / "out" / "sub" / "a").read_text(encoding="utf-8") == "1"
    assert os.listdir(tmp_path / "deep") == ["out"]  # noqa: PTH208 - hidden names count


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("new", [atomic_file, new_folder_of_kind])
def test_failed_block_leaves_nothing_behind(
    tmp_path: Path, new: Callable[[Path], AbstractContextManager[Path]], error: type[BaseException]
) -> None:
    def fail() -> None:
        with new(tmp_path / "out") as unfinished:
            (unfinished / "part" if new is new_folder_of_kind else unfinished).touch()
            raise error

    with pytest.raises(error):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_existing_path_raises_without_force(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old", encoding="utf-8")
    with pytest.raises(InputError, match="exists already"):
        check_output_path(tmp_path / "file", force=False)
    with pytest.raises(InputError, match="exists already"), atomic_file(tmp_path / "file"):
        pytest.fail("the block ran")
    with atomic_file(tmp_path / "file", force=True) as file:
        file.write_text("new", encoding="utf-8")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "new"


@pytest.mark.parametrize("exchanges", [True, False])
def test_force_replaces_the_whole_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, exchanges: bool) -> None:
    if not exchanges:
        monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    for name in ("old", "new"):
        _save(tmp_path / "out", name, force=True)
    assert _names(tmp_path / "out") == ["made.json", "new"]
    assert _names(tmp_path) == ["out"]


def test_old_folder_is_restored_if_the_move_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out"
    _save(target, "old")
    replace = Path.replace

    def stop(source: Path, to: Path) -> Path:
        if to == target and source.name == "new":
            raise KeyboardInterrupt
        return replace(source, to)

    monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        _save(target, "new", force=True)
    assert _names(target) == ["made.json", "old"]
    assert _names(tmp_path) == ["out"]


@pytest.mark.parametrize("below", [["out"], ["a", "b", "out"]])
def test_unwritable_path_raises_in_one_line(tmp_path: Path, below: list[str]) -> None:
    (tmp_path / "file").touch()
    for new in (new_folder_of_kind, atomic_file):
        with (
            pytest.raises(InputError, match="cannot write") as caught,
            new((tmp_path / "file").joinpath(*below)),
        ):
            pytest.fail("the block ran")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["s3://bucket/out", "file:///out", "git+https://host/out", "memory://out"])
def test_url_is_refused_and_no_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.chdir(tmp_path)
    for new in (new_folder_of_kind, atomic_file, locked):
        with pytest.raises(InputError, match="is a URL, expected a path on this machine"), new(Path(url)):
            pytest.fail("the block ran")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
@pytest.mark.parametrize("name", ["s3:x", "a b:/x", "12:30", "c:x", "a:b/c"])
def test_names_with_a_colon_are_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with atomic_file(Path(name)) as file:
        file.write_text("x")
    assert (tmp_path / name).read_text() == "x"


def test_errors_about_other_files_are_not_converted(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_folder(tmp_path / "out", kind=_KIND):
        Path("/no/such/input").read_text(encoding="utf-8")


def test_sha256_matches_hashlib(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc" * 1000)
    assert sha256(tmp_path / "a") == hashlib.sha256(b"abc" * 1000).hexdigest()


@pytest.mark.parametrize("force", [False, True])
def test_atomic_folder_never_replaces_a_file(tmp_path: Path, *, force: bool) -> None:
    (tmp_path / "out").write_text("kept", encoding="utf-8")
    with pytest.raises(InputError, match="out is not a folder, expected a new path; choose another"):
        _save(tmp_path / "out", "new", force=force)
    assert (tmp_path / "out").read_text(encoding="utf-8") == "kept"


def test_link_is_kept_and_its_target_is_replaced(tmp_path: Path) -> None:
    _save(tmp_path / "elsewhere" / "there", "old")
    target = tmp_path / "out"
    target.symlink_to(tmp_path / "elsewhere" / "there")
    _save(target, "new", force=True)
    assert target.is_symlink()
    assert _names(tmp_path / "elsewhere" / "there") == ["made.json", "new"]
    assert (_names(tmp_path), _names(tmp_path / "elsewhere")) == (["elsewhere", "out"], ["there"])


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_exchange_returns_false_where_the_file_system_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: object) -> int:
        ctypes.set_errno(number)
        return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace(renameat2=fail, renamex_np=fail))
    monkeypatch.setattr(sys, "platform", "linux")
    if number == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            atomic._exchange(tmp_path / "a", tmp_path / "b")
    else:
        assert not atomic._exchange(tmp_path / "a", tmp_path / "b")


def test_exchange_returns_false_where_the_system_lacks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace())
    for platform in ("linux", "darwin", "win32"):
        monkeypatch.setattr(sys, "platform", platform)
        assert not atomic._exchange(tmp_path / "a", tmp_path / "b")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize(
    ("umask", "folders", "files"), [(0o077, 0o700, 0o600), (0o022, 0o755, 0o644), (0o002, 0o775, 0o664)]
)
def test_permissions_follow_the_umask(tmp_path: Path, umask: int, folders: int, files: int) -> None:
    before = os.umask(umask)
    try:
        with atomic_folder(tmp_path / "out", kind=_KIND) as folder:
            (folder / "new").touch()
            (folder / "private").touch(0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == folders
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()] == [files, files]


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("exchanges", [True, False])
def test_replacement_keeps_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, exchanges: bool) -> None:
    if not exchanges:
        monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    target = tmp_path / "out"
    target.mkdir(0o700)
    _save(target, "a", force=True)
    assert {path.name: _mode(path) for path in [target, *target.iterdir()]} == {
        "out": 0o700,
        "a": 0o600,
        "made.json": 0o600,
    }
    target.chmod(0o755)
    (target / "made.json").chmod(0o644)
    _save(target, "a", "b", force=True)
    assert [_mode(target / name) for name in ("a", "made.json", "b", ".")] == [0o600, 0o644, 0o600, 0o755]
    target.chmod(0o750)
    (target / "a").chmod(0o400)
    _save(target, "a", "b", force=True)
    assert [_mode(target / name) for name in ("a", "made.json", "b", ".")] == [0o600, 0o644, 0o600, 0o750]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_replacement_keeps_the_permissions_of_subfolders(tmp_path: Path) -> None:
    def save() -> None:
        with atomic_folder(tmp_path / "out", kind=_KIND, force=True) as folder:
            for name in ("private", "public"):
                (folder / name).mkdir()
                (folder / name / "a").touch()
            _KIND.write_manifest(folder, {"made_by": "a test"})

    save()
    (tmp_path / "out" / "private").chmod(0o700)
    (tmp_path / "out" / "private" / "a").chmod(0o600)
    save()
    modes = {path.relative_to(tmp_path).as_posix(): _mode(path) for path in (tmp_path / "out").rglob("*/*")}
    assert modes == {"out/private/a": 0o600, "out/public/a": 0o644}
    assert (_mode(tmp_path / "out" / "private"), _mode(tmp_path / "out" / "public")) == (0o700, 0o755)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_replaced_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    (tmp_path / "out").touch()
    (tmp_path / "out").chmod(mode)
    with atomic_file(tmp_path / "out", force=True) as file:
        assert _mode(file.parent) == 0o700
        file.write_text("new", encoding="utf-8")
    assert _mode(tmp_path / "out") == mode | 0o600


@pytest.mark.skipif(not hasattr(os, "chown"), reason="Windows has no such groups")
@pytest.mark.parametrize("allowed", [True, False])
def test_replacement_keeps_the_group_or_gives_none_its_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, allowed: bool
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    _save(tmp_path / "out", "a")
    for path, mode in ((tmp_path / "out", 0o750), (tmp_path / "out" / "a", 0o640)):
        try:
            os.chown(path, -1, 54321)
        except PermissionError:
            pytest.skip("only root can give a file to any group")
        path.chmod(mode)
    if not allowed:
        monkeypatch.setattr(os, "chown", refuse)
    _save(tmp_path / "out", "a", "b", force=True)
    found = [(_mode(path), path.stat().st_gid) for path in (tmp_path / "out" / name for name in (".", "a", "b"))]
    group = os.getegid()
    assert found == (
        [(0o750, 54321), (0o640, 54321), (0o640, 54321)]
        if allowed
        else [(0o700, group), (0o600, group), (0o600, group)]
    )


@pytest.mark.parametrize(
    ("foreign", "message"),
    [
        (["notes.txt"], "holds notes.txt, which its made.json does not list, so it is not replaced"),
        ([".git/config", "a", "b", "c"], "holds .git/config, a, b and more, which"),
        (["sub/deep/page.html"], "holds sub/deep/page.html, which"),
    ],
)
def test_folder_with_an_unlisted_file_is_never_replaced(tmp_path: Path, foreign: list[str], message: str) -> None:
    target = tmp_path / "out"
    _save(target, "old")
    for name in foreign:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text("mine", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        _save(target, "new", force=True)
    assert message in str(caught.value)
    assert all((target / name).read_text(encoding="utf-8") == "mine" for name in foreign)
    with pytest.raises(InputError, match="exists already and holds") as caught:
        _save(target, "new")
    assert "--force" not in str(caught.value)


@pytest.mark.parametrize(
    "manifest",
    [
        "no JSON",
        "[]",
        "{}",
        '{"made_by": "x"}',
        '{"made_by": "x", "files": []}',
        '{"made_by": "x", "files": ["old"]}',
        '{"files": [{"name": "old", "size_bytes": 3, "sha256": "' + "0" * 64 + '"}]}',
    ],
)
def test_folder_with_an_invalid_manifest_is_never_replaced(tmp_path: Path, manifest: str) -> None:
    target = tmp_path / "out"
    _save(target, "old")
    (target / "made.json").write_text(manifest, encoding="utf-8")
    with pytest.raises(InputError, match=r"holds a file made\.json that edgeembed did not write or that is damaged"):
        _save(target, "new", force=True)
    assert _names(target) == ["made.json", "old"]


def test_folder_without_manifest_is_replaced_only_if_empty(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    _save(target, "new", force=True)
    (target / "made.json").unlink()
    with pytest.raises(InputError, match=r"holds no made\.json but new, so it is not replaced"):
        _save(target, "newer", force=True)
    assert _names(target) == ["new"]


def test_link_in_a_folder_counts_as_an_unlisted_file(tmp_path: Path) -> None:
    target = tmp_path / "out"
    _save(target, "old")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter").write_text("dear", encoding="utf-8")
    (target / "linked").symlink_to(tmp_path / "letters")
    with pytest.raises(InputError, match="holds linked, which"):
        _save(target, "new", force=True)
    assert (tmp_path / "letters" / "letter").exists()


def test_files_that_appear_during_the_block_are_never_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    _save(target, "old")

    def add_to_target() -> None:
        with atomic_folder(target, kind=_KIND, force=True):
            (target / "notes.txt").touch()

    def make_folder() -> None:
        with atomic_folder(tmp_path / "other", kind=_KIND):
            (tmp_path / "other").mkdir()
            (tmp_path / "other" / "mine").touch()

    def make_file() -> None:
        with atomic_file(tmp_path / "file") as file:
            file.write_text("new", encoding="utf-8")
            (tmp_path / "file").write_text("mine", encoding="utf-8")

    for act, message in (
        (add_to_target, "holds notes.txt, which"),
        (make_folder, "exists already"),
        (make_file, "exists already"),
    ):
        with pytest.raises(InputError, match=message):
            act()
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"
    assert (_names(target), _names(tmp_path / "other")) == (["made.json", "notes.txt", "old"], ["mine"])
    assert _names(tmp_path) == ["file", "other", "out"]


_HANGS = """
import sys, time
from pathlib import Path
from edgeembed_runtime.storage import atomic
from edgeembed_runtime.storage.folder_kind import FolderKind
{before}
with atomic.atomic_folder(Path(sys.argv[1]), kind=FolderKind("made.json", ("made_by",)), force=True) as folder:
    (folder / "part").touch()
    {during}
"""
_WAIT = "print(flush=True), time.sleep(600)"


def _hanging(target: Path, before: str = "", during: str = _WAIT) -> "subprocess.Popen[bytes]":
    """Start a process that hangs while it writes a folder, and wait until it does."""
    code = _HANGS.format(before=before, during=during)
    process = subprocess.Popen([sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    return process


def test_temporary_folders_of_dead_processes_are_removed(tmp_path: Path) -> None:
    target = tmp_path / "out"
    others = [".out.0123abcd.tmp.kept", ".outer.0123abcd.tmp", "out.0123abcd.tmp"]
    for name in others:
        (tmp_path / name).mkdir()
    with _hanging(target) as living, _hanging(target) as dead:
        dead.kill()
        dead.wait()
        assert len(_names(tmp_path)) == 5
        _save(target, "new", force=True)
        assert len(_names(tmp_path)) == 5  # with that of the living one
        assert _names(target) == ["made.json", "new"]
        living.kill()
    with atomic_file(tmp_path / "out2") as file:
        file.touch()
    assert len(_names(tmp_path)) == 6
    _save(target, "newer", force=True)
    assert _names(tmp_path) == sorted([*others, "out", "out2"])


def test_old_folder_is_restored_after_a_killed_replacement(tmp_path: Path) -> None:
    target = tmp_path / "out"
    _save(target, "old")
    hang_before_moving_in = (
        "atomic._exchange = lambda *_: False\n"
        "replace = Path.replace\n"
        f"Path.replace = lambda source, to: (replace(source, to), {_WAIT})"
    )
    with _hanging(target, before=hang_before_moving_in, during="pass") as process:
        process.kill()
    assert not target.exists()
    with pytest.raises(InputError, match="exists already"):
        check_output_path(target, force=False, kind=_KIND)
    assert _names(target) == ["made.json", "old"]
    assert _names(tmp_path) == ["out"]


def test_everything_is_synced_before_the_folder_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "deep" / "er" / "out"
    synced: set[int] = set()
    had_appeared: list[bool] = []
    fsync = os.fsync

    def sync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        had_appeared.append(target.exists())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    with atomic_folder(target, kind=_KIND) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "file").touch()
    paths = [target, target / "sub", target / "sub" / "file", target.parent, target.parent.parent, tmp_path]
    assert {path.stat().st_ino for path in paths} <= synced
    assert had_appeared == [False] * (len(had_appeared) - 1) + [True]  # the folder above it comes last
