"""Raise an exception on SIGTERM and SIGHUP, so that a command cleans up before it ends."""

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP


class Terminated(BaseException):
    """Raised when the process receives SIGTERM or SIGHUP.

    Args:
        number: The signal's number.

    Attributes:
        exit_code: 128 plus the signal number, as in shells.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class Terminations:
    """The signals of a block of `raised_terminations`.

    Attributes:
        first: The exception raised on the first signal, or None: if a C extension was being imported, the block gets
            an ImportError instead.
    """

    def __init__(self) -> None:
        self.first: Terminated | None = None
        self.is_ignored = False

    def ignore(self) -> None:
        """Ignore signals from now on. Call it when only leaving the block remains: nothing there could catch them."""
        self.is_ignored = True


@contextlib.contextmanager
def raised_terminations() -> Iterator[Terminations]:
    """Raise `Terminated` in the block on the first SIGTERM or SIGHUP; ignore later ones.

    A signal that is already ignored (`nohup`) stays ignored. Outside the main thread this has no effect.

    Yields:
        What was received, and the means to ignore further signals.
    """
    terminations = Terminations()
    process = os.getpid()

    def receive(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != process:  # a forked worker that its parent terminates
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not terminations.first and not terminations.is_ignored:
            terminations.first = Terminated(number)
            raise terminations.first

    previous = {}
    with contextlib.suppress(ValueError):  # not in the main thread: no signal arrives here
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            if signal.getsignal(number) == signal.SIG_DFL:
                previous[number] = signal.signal(number, receive)
    try:
        yield terminations
    finally:
        terminations.ignore()
        for number, handler in previous.items():
            signal.signal(number, handler)
