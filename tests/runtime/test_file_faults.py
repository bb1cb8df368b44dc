"""If any two file-system calls fail during a replacement, the complete old or new content remains."""

import errno
import itertools
import os
import pathlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime import InputError
from edgeembed_runtime.storage import atomic
from edgeembed_runtime.storage.atomic import atomic_file, atomic_folder
from edgeembed_runtime.storage.folder_kind import FolderKind

_KIND = FolderKind("made.json", ("made_by",))
_WRITING = ("rename", "replace", "fsync", "mkdir", "rmdir", "unlink", "open", "chmod")
_READING = ("lstat", "stat", "scandir", "listdir")


class _Faults:
    """Makes some of the following file-system calls fail, by their number."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.last_run = 0
        self.failing: tuple[int, ...] = ()
        self.error: Callable[[], BaseException] = lambda: OSError(errno.EIO, "Input/output error")
        patch.setattr(os, "fsync", lambda _: None)  # nothing here outlives the machine
        # pathlib of Python 3.10 has references of its own to these functions.
        accessor = vars(pathlib).get("_NormalAccessor")
        for name in _WRITING + _READING:
            call = getattr(os, name)
            if accessor is not None and vars(accessor).get(name) is call:
                patch.setattr(accessor, name, staticmethod(self._wrapped(call)))
            patch.setattr(os, name, self._wrapped(call))

    def _wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls in self.failing:
                raise self.error()
            return call(*given, **named)

        return counted

    def run(self, act: Callable[[], None], failing: tuple[int, ...]) -> BaseException | None:
        """Run something with some calls failing; return what it raised."""
        self.calls, self.failing = 0, failing
        try:
            act()
        except (InputError, OSError, KeyboardInterrupt) as error:
            return error
        finally:
            self.failing, self.last_run = (), self.calls
        return None

    def check_pairs(self, check: Callable[[tuple[int, ...]], None]) -> None:
        """Check what happens if one call fails, and if any of those that follow it fails as well.

        Args:
            check: Calls `run` first with the numbers that it is given; it is to leave all as it was.
        """
        for first in itertools.count(1):
            calls = self._calls_with(check, (first,))
            if calls < first:
                return
            for second in range(first + 1, calls + 1):
                check((first, second))

    def _calls_with(self, check: Callable[[tuple[int, ...]], None], failing: tuple[int, ...]) -> int:
        self.last_run = 0
        check(failing)
        return self.last_run


def _save(path: Path, content: str) -> None:
    with atomic_folder(path, kind=_KIND, force=True) as folder:
        (folder / "file").write_text(content, encoding="utf-8")
        _KIND.write_manifest(folder, {"made_by": "a test"})


def _content(folder: Path) -> str:
    assert _KIND.obstacle(folder) is None
    return (folder / "file").read_text(encoding="utf-8")


def _check_folder(parent: Path, error: BaseException | None) -> None:
    if (parent / "out").exists():
        assert _content(parent / "out") in (["new"] if error is None else ["old", "new"])
    else:
        assert isinstance(error, InputError)
        (kept,) = parent.glob(".out.*.tmp/old")
        assert str(kept) in str(error)
        assert _content(kept) == "old"
    _save(parent / "out", "old")
    assert _content(parent / "out") == "old"
    assert [path.name for path in parent.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("error", "exchanges"),
    [(OSError, True), (OSError, False), pytest.param(KeyboardInterrupt, False, marks=pytest.mark.slow)],
)
def test_every_pair_of_failing_calls_leaves_the_old_folder_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], *, exchanges: bool
) -> None:
    if not exchanges:
        monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    faults = _Faults(monkeypatch)
    if error is KeyboardInterrupt:
        faults.error = KeyboardInterrupt
    target = tmp_path / "out"
    _save(target, "old")
    are_kept = []

    def check(failing: tuple[int, ...]) -> None:
        raised = faults.run(lambda: _save(target, "new"), failing)
        are_kept.append(not target.exists())
        if are_kept[-1] and error is KeyboardInterrupt:  # the second one stopped the repair
            atomic.check_output_path(target, force=True, kind=_KIND)
            assert _content(target) == "old"
        _check_folder(tmp_path, raised)

    faults.check_pairs(check)
    assert any(are_kept) is not exchanges


def test_every_pair_of_failing_calls_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"

    def write(content: str) -> None:
        with atomic_file(target, force=True) as file:
            file.write_text(content, encoding="utf-8")

    def check(failing: tuple[int, ...]) -> None:
        error = faults.run(lambda: write("new"), failing)
        assert target.read_text(encoding="utf-8") in (["new"] if error is None else ["old", "new"])
        write("old")
        assert [path.name for path in tmp_path.iterdir()] == ["out"]

    faults = _Faults(monkeypatch)
    write("old")
    faults.check_pairs(check)
