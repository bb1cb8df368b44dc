"""Progress reporting: what long work calls, and a reporter that says nothing."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]
"""Called with how much of a step is done so far."""


class Reporter(Protocol):
    """Hears of steps as they begin, advance and end, and of what else is worth a line."""

    def step(self, name: str, total: int | None = None) -> AbstractContextManager[Advance]:
        """Enter a step; `total` is in the unit that its advances count in."""
        ...

    def note(self, message: str) -> None:
        """Pass on one line for the user."""
        ...


class SilentReporter:
    """A reporter that nobody hears."""

    @contextmanager
    def step(self, name: str, total: int | None = None) -> Iterator[Advance]:  # noqa: ARG002
        """Enter a step and say nothing."""
        yield lambda _done: None

    def note(self, message: str) -> None:
        """Say nothing."""
