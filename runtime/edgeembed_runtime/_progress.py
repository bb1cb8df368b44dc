"""A counter on the terminal, for work that takes long enough to want one."""

import sys
import time
from collections.abc import Iterable, Iterator

_WAIT_S = 2.0
_REFRESH_S = 0.2


def counted(steps: Iterable[int], total: int, what: str) -> Iterator[int]:
    """Give the steps, with a counter on stderr once two seconds have passed, if stderr is a terminal.

    Args:
        steps: How many more items are done, each time some are.
        total: How many there are.
        what: What the items are called.
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
