"""SIGTERM and SIGHUP as an exception, so that a command cleans up before it ends."""

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP


class Terminated(BaseException):
    """Raised when the process was asked to end.

    Args:
        number: The signal's number.

    Attributes:
        exit_code: 128 and the number, as shells report it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


@contextlib.contextmanager
def raised_terminations() -> Iterator[list[Terminated]]:
    """Raise `Terminated` in the block when SIGTERM or SIGHUP arrives; those that follow are ignored.

    A signal that was ignored before, as `nohup` has it, stays ignored. Outside the main thread nothing changes.

    Yields:
        A list that the exception is added to: a C extension turns one during its import into an ImportError.
    """
    received: list[Terminated] = []
    process = os.getpid()

    def receive(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != process:  # a forked worker, which its parent ends this way
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not received:
            received.append(Terminated(number))
            raise received[0]

    previous = {}
    with contextlib.suppress(ValueError):  # not in the main thread, where no signal arrives
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            if signal.getsignal(number) == signal.SIG_DFL:
                previous[number] = signal.signal(number, receive)
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
