"""Report and time the steps of a long task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

StepListener = Callable[..., AbstractContextManager[Any]]
"""Called with the name of a step, and what else the task says of it; the context is entered while the step runs."""


class StepTimer:
    """Steps that are reported and timed.

    Args:
        listener: Receives each step; None reports none.

    Attributes:
        seconds: Wall-clock time of each completed step; those of a repeated step add up.
    """

    def __init__(self, listener: StepListener | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._listener: StepListener = listener or (lambda *_: nullcontext())

    @contextmanager
    def step(self, name: str, *details: Any) -> Iterator[Any]:
        """Run a step; the context's value is the listener's.

        Args:
            name: Name of the step.
            details: Passed to the listener.
        """
        start = time.perf_counter()
        with self._listener(name, *details) as advance:
            yield advance
        self.seconds[name] = round(self.seconds.get(name, 0) + time.perf_counter() - start, 3)
