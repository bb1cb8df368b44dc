"""A progress counter on the terminal."""

import sys
import time
from collections.abc import Iterable, Iterator

_WAIT_S = 2.0
_REFRESH_S = 0.2


def with_counter(steps: Iterable[int], total: int, what: str) -> Iterator[int]:
    """Yield each step; after two seconds, show a counter on stderr if stderr is a terminal.

    Args:
        steps: For each step, the number of items that it finished.
        total: The number of all items.
        what: The plural noun for the items, such as "texts".
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield from steps
        return
    due = time.monotonic() + _WAIT_S
    shown, done = False, 0
    for step in steps:
        done += step
        if time.monotonic() >= due:
            sys.stderr.write(f"\r{done:,} of {total:,} {what}")
            sys.stderr.flush()
            shown, due = True, time.monotonic() + _REFRESH_S
        yield step
    if shown:
        sys.stderr.write(f"\r{total:,} of {total:,} {what}\n")
