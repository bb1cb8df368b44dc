"""SIGTERM as an exception: in the block, and while the block is left."""

import os
import signal
import sys
from collections.abc import Iterator

import pytest
from edgeembed_runtime.termination import Terminated, raised_terminations

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGTERM to itself")


@pytest.fixture(autouse=True)
def _default_handler() -> Iterator[None]:
    previous = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, previous)


def _receive() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_first_signal_raises_and_later_ones_are_ignored() -> None:
    with raised_terminations() as terminations:
        with pytest.raises(Terminated) as raised:
            _receive()
        _receive()
    assert terminations.first is raised.value
    assert raised.value.exit_code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_ignored_signal_raises_nothing() -> None:
    with raised_terminations() as terminations:
        terminations.ignore()
        _receive()
    assert terminations.first is None


def test_signal_that_arrives_as_the_block_is_left_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    restore = signal.signal

    def restored(number: int, handler: signal.Handlers) -> object:
        if number == signal.SIGTERM:
            _receive()
        return restore(number, handler)

    with raised_terminations() as terminations:
        monkeypatch.setattr(signal, "signal", restored)
    monkeypatch.undo()
    assert terminations.first is None
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with raised_terminations() as terminations:
        _receive()
    assert terminations.first is None
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
