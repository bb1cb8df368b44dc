"""Progress reporting: the protocol, a silent reporter, and timed steps."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from edgeembed_exporters.steps import StepTimer

Advance = Callable[[int], None]
"""Called with the amount of a step that is done so far."""


class Reporter(Protocol):
    """Receiver of the steps of a long task, and of messages for the user."""

    def step(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
        """Return a context manager for a step; its value is called with the progress.

        If there is a total, the first call states what an earlier run has done, usually 0.

        Args:
            name: Name of the step.
            total: Amount of work, in the unit of the progress; None if unknown.
            unit: What is counted, in the plural, such as "sentences"; for messages.
        """
        ...

    def note(self, message: str) -> None:
        """Report one line for the user."""
        ...


class SilentReporter:
    """A reporter that reports nothing."""

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:  # noqa: ARG002
        """Run a step silently."""
        yield lambda _done: None

    def note(self, message: str) -> None:
        """Ignore the message."""


class TimedSteps(StepTimer):
    """Steps that are reported and timed.

    Args:
        reporter: Receives the steps.

    Attributes:
        reporter: The same.
    """

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(reporter.step)
        self.reporter = reporter
