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


@contextlib.contextmanager
def raised_terminations() -> Iterator[list[Terminated]]:
    """Raise `Terminated` in the block on the first SIGTERM or SIGHUP; ignore later ones.

    A signal that is already ignored (`nohup`) stays ignored. Outside the main thread this has no effect.

    Yields:
        A list to which the exception is appended: one raised while a C extension is imported becomes an ImportError.
    """
    received: list[Terminated] = []
    process = os.getpid()

    def receive(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != process:  # a forked worker that its parent terminates
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not received:
            received.append(Terminated(number))
            raise received[0]

    previous = {}
    with contextlib.suppress(ValueError):  # not in the main thread: no signal arrives here
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            if signal.getsignal(number) == signal.SIG_DFL:
                previous[number] = signal.signal(number, receive)
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
