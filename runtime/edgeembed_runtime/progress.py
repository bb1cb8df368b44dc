"""A counter on the terminal, for work that takes long enough to want one."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

_WAIT_S = 2.0
_REFRESH_S = 0.2


def counted(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Give the items, with a counter on stderr once two seconds have passed, if stderr is a terminal.

    Args:
        items: What is worked on.
        what: What the items are called.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    due = time.monotonic() + _WAIT_S
    shown = False
    for number, item in enumerate(items):
        if time.monotonic() >= due:
            sys.stderr.write(f"\r{number:,} of {len(items):,} {what}")
            sys.stderr.flush()
            shown, due = True, time.monotonic() + _REFRESH_S
        yield item
    if shown:
        sys.stderr.write(f"\r{len(items):,} of {len(items):,} {what}\n")
