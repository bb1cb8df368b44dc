"""The counter is for terminals and for work that takes time."""

import io

import edgeembed_runtime._progress
import pytest
from edgeembed_runtime._progress import with_counter


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    assert list(with_counter([2, 1], 3, "texts")) == [2, 1]
    assert stream.getvalue() == ""


def test_long_work_counts_on_one_line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(edgeembed_runtime._progress, "_WAIT_S", 0)
    monkeypatch.setattr(edgeembed_runtime._progress, "_REFRESH_S", 0)
    assert list(with_counter([2, 1], 3, "texts")) == [2, 1]
    assert stream.getvalue() == "\r2 of 3 texts\r3 of 3 texts\r3 of 3 texts\n"


def test_long_work_shows_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(edgeembed_runtime._progress, "_WAIT_S", 0)
    assert list(with_counter([2, 1], 3, "texts")) == [2, 1]
    assert stream.getvalue() == ""
