"""Threads, locks and forks: a thread pool, a read-write lock, and a gate that delays forks."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_QUOTA = "/sys/fs/cgroup/cpu.max"
_POLL_INTERVAL_S = 0.0005


def available_cores() -> int:
    """Return the number of cores that the process may use, from its CPU affinity and its cgroup v2 quota."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(affinity, _quota_cores(affinity)))


def run_in_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """Yield the result for each item, in order, computed by several threads.

    If an item raises, or the caller stops iterating, items that have not started are dropped.

    Args:
        work: The function to call with each item.
        items: The items.
        threads: The number of threads, at most one per item. With one, and in a web page (Pyodide), where no thread can
            be started, the calling thread does the work.
    """
    threads = min(threads, len(items))
    if threads <= 1 or sys.platform == "emscripten":
        yield from map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    executor = ThreadPoolExecutor(threads)
    try:
        yield from executor.map(work, items)
    finally:
        executor.shutdown(cancel_futures=True)


class ReadWriteLock:
    """Lets any number of threads read, or one thread write. Waiting writers go before new readers. Not reentrant."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._has_writer = False  # also while the writer waits for readers to finish

    @contextlib.contextmanager
    def read(self) -> Iterator[None]:
        """Hold the lock for reading."""
        with self._condition:
            self._condition.wait_for(lambda: not self._has_writer)
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """Hold the lock for writing."""
        with self._condition:
            self._condition.wait_for(lambda: not self._has_writer)
            self._has_writer = True
        try:
            with self._condition:
                self._condition.wait_for(lambda: self._readers == 0)
            yield
        finally:
            with self._condition:
                self._has_writer = False
                self._condition.notify_all()


class ForkGate:
    """Make a fork wait until no thread is inside `run`. A call of `run` costs a fraction of a microsecond.

    A lock that native code holds during a fork would stay locked in the child process forever.
    """

    def __init__(self) -> None:
        self._running: set[object] = set()  # adding and discarding are atomic, and cheaper than any lock
        self._open = _new_event_that_is_set()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._close, after_in_parent=self._reopen, after_in_child=self._reset)

    def run(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Call a function, before or after a fork of this process but not during one."""
        call = object()
        try:  # from here on, because Ctrl-C may raise an exception anywhere
            self._running.add(call)
            while not self._open.is_set():
                self._running.discard(call)
                self._open.wait()
                self._running.add(call)
            return work(*arguments)
        finally:
            self._running.discard(call)

    def _close(self) -> None:
        self._open.clear()
        while self._running:
            time.sleep(_POLL_INTERVAL_S)

    def _reopen(self) -> None:
        self._open.set()

    def _reset(self) -> None:
        # The child has one thread, so nobody is inside the gate or waiting at it.
        self._running.clear()
        self._open = _new_event_that_is_set()


def _new_event_that_is_set() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def _quota_cores(default: int) -> int:
    try:
        with open(_QUOTA, encoding="ascii") as file:  # noqa: PTH123
            quota_us, period_us = file.read().split()
        return round(int(quota_us) / int(period_us))
    except (OSError, ValueError, ZeroDivisionError):  # not in a container, or "max": no quota
        return default
