"""Progress on stderr: a bar for long steps on a terminal; elsewhere one line per minute and one at the end."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from edgeembed.cli.output import escape_controls
from edgeembed.progress import Advance

_PATIENCE_S = 2.0
_INTERVAL_S = 60.0


class TerminalReporter:
    """Reports the progress of steps on stderr.

    Args:
        quiet: Whether to print nothing.
        interval_s: Seconds between two lines about a running step, if stderr is not a terminal.
    """

    def __init__(self, *, quiet: bool = False, interval_s: float = _INTERVAL_S) -> None:
        self.console = Console(stderr=True, quiet=quiet)
        self.interval_s = interval_s

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Report a step while the block runs; a bar appears after two seconds."""
        name = escape_controls(name)
        start = time.perf_counter()
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        bar = Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        task = bar.add_task(name, total=total)
        pace = Pace(name, total, unit)

        def advance(done: int) -> None:
            pace.advance(done, time.perf_counter())
            bar.update(task, completed=done)
            if time.perf_counter() - start > _PATIENCE_S and not bar.live.is_started:
                bar.start()

        ended = threading.Event()
        # A thread, because a step may not advance within a minute, or at all.
        printer = threading.Thread(target=self._print_lines, args=(pace, ended), daemon=True)
        if not self.console.is_terminal:
            printer.start()
        try:
            yield advance
        finally:
            ended.set()
            if printer.is_alive():
                printer.join()
            bar.stop()
        count = ""
        if total:  # training may stop early
            done = f"{pace.done:,} of " if 0 < pace.done < total else ""
            earlier = f", {pace.earlier:,} of them by an earlier run," if pace.earlier else ""
            count = f"{done}{_counted(total, unit)}{earlier} in "
        self.console.print(f"{name}: {count}{time.perf_counter() - start:.1f} s", highlight=False)

    def note(self, message: str) -> None:
        """Print one line on stderr."""
        self.console.print(escape_controls(message), highlight=False, markup=False, soft_wrap=True)

    def _print_lines(self, pace: "Pace", ended: threading.Event) -> None:
        start = time.perf_counter()
        while not ended.wait(self.interval_s):
            self.console.print(pace.line(time.perf_counter(), start), highlight=False, markup=False, soft_wrap=True)


class Pace:
    """The progress of a step, and its rate.

    Args:
        name: The step's name.
        total: Number of units to do; None if unknown.
        unit: What is counted, such as "sentences".
    """

    def __init__(self, name: str, total: int | None, unit: str = "") -> None:
        self.name, self.total, self.unit = name, total, unit
        # The first advance may count work of an earlier run, which does not count in the rate.
        self._first: tuple[int, float] | None = None
        self._last = (0, 0.0)

    @property
    def done(self) -> int:
        """Number of units done at the last advance."""
        return self._last[0]

    @property
    def earlier(self) -> int:
        """Number of units done at the first advance, by an earlier run."""
        return self._first[0] if self._first else 0

    def advance(self, done: int, now_s: float) -> None:
        """Record the number of units done at a time in seconds."""
        self._last = (done, now_s)
        self._first = self._first or self._last

    def line(self, now_s: float, start_s: float) -> str:
        """Return the progress in one line: units done and total, percent, rate and remaining time, as far as known.

        Args:
            now_s: The current time in seconds.
            start_s: The time at which the step started.
        """
        if self._first is None or not self.total:
            return f"{self.name}: running for {_duration(now_s - start_s)}"
        (before, first_s), (done, _) = self._first, self._last
        shown = f"{self.name}: {done:,} of {_counted(self.total, self.unit)} ({100 * done / self.total:.0f} %)"
        rate = (done - before) / max(now_s - first_s, 1e-9)
        if rate <= 0:
            return shown
        return f"{shown}, {rate:.3g}/s, {_duration(max(self.total - done, 0) / rate)} left"


def _counted(number: int, unit: str) -> str:
    return f"{number:,} {unit}" if unit else f"{number:,}"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def note(message: str) -> None:
    """Print one line on stderr; stdout is for results only."""
    click.echo(escape_controls(message), err=True)
