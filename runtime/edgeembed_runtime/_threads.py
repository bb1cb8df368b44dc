"""Work on the cores that the process may use."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def available_cores() -> int:
    """Give how many cores the process may use: those it is bound to, no more than its quota of cgroup v2 pays for."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(bound, _paid_cores(bound)))


def run_in_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """Give the result of each item, in order, worked on by several threads at once.

    If one raises, or the caller stops, what has not begun is dropped.

    Args:
        work: What is done with an item.
        items: What is worked on.
        threads: How many threads; there are never more than items, and with one it is this thread that works.
    """
    threads = min(threads, len(items))
    if threads <= 1:
        yield from map(work, items)
        return
    # Imported here because a single text never needs it.
    from concurrent.futures import ThreadPoolExecutor

    executor = ThreadPoolExecutor(threads)
    try:
        yield from executor.map(work, items)
    finally:
        executor.shutdown(cancel_futures=True)


def _paid_cores(otherwise: int) -> int:
    try:
        quota_us, period_us = _QUOTA.read_text(encoding="ascii").split()
        return round(int(quota_us) / int(period_us))
    except (OSError, ValueError, ZeroDivisionError):  # no container, or "max": no quota
        return otherwise
