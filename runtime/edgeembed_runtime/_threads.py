"""Run work on several threads, and count the cores available for them."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


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
        threads: The number of threads, at most one per item. With one, the calling thread does the work.
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


def _quota_cores(default: int) -> int:
    try:
        quota_us, period_us = _QUOTA.read_text(encoding="ascii").split()
        return round(int(quota_us) / int(period_us))
    except (OSError, ValueError, ZeroDivisionError):  # not in a container, or "max": no quota
        return default
