"""Progress on stderr: a bar on a terminal where a step takes long; elsewhere a line a minute and one at the end."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from edgeembed.progress import Advance

_PATIENCE_S = 2.0
_INTERVAL_S = 60.0


class TerminalReporter:
    """Shows steps to a person.

    Args:
        quiet: Whether to say nothing.
        interval_s: Seconds between two lines about a step that is still running, where stderr is not a terminal.
    """

    def __init__(self, *, quiet: bool = False, interval_s: float = _INTERVAL_S) -> None:
        self.console = Console(stderr=True, quiet=quiet)
        self.interval_s = interval_s

    @contextmanager
    def step(self, name: str, total: int | None = None) -> Iterator[Advance]:
        """Enter a step; a bar appears once it has taken two seconds."""
        start = time.perf_counter()
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        bar = Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        task = bar.add_task(name, total=total)
        pace = Pace(name, total)

        def advance(done: int) -> None:
            pace.advance(done, time.perf_counter())
            bar.update(task, completed=done)
            if time.perf_counter() - start > _PATIENCE_S and not bar.live.is_started:
                bar.start()

        ended = threading.Event()
        # A thread, because a step need not advance within a minute, or at all.
        speaker = threading.Thread(target=self._speak, args=(pace, ended), daemon=True)
        if not self.console.is_terminal:
            speaker.start()
        try:
            yield advance
        finally:
            ended.set()
            if speaker.is_alive():
                speaker.join()
            bar.stop()
        count = ""
        if total:  # training may stop early
            count = f"{pace.done:,} of {total:,} in " if 0 < pace.done < total else f"{total:,} in "
        self.console.print(f"{name}: {count}{time.perf_counter() - start:.1f} s", highlight=False)

    def note(self, message: str) -> None:
        """Print one line on stderr."""
        self.console.print(message, highlight=False, markup=False, soft_wrap=True)

    def _speak(self, pace: "Pace", ended: threading.Event) -> None:
        start = time.perf_counter()
        while not ended.wait(self.interval_s):
            self.console.print(pace.line(time.perf_counter(), start), highlight=False, markup=False, soft_wrap=True)


class Pace:
    """How far a step is, and how fast it goes.

    Args:
        name: What the step is called.
        total: How much there is to do; None where that is unknown.
    """

    def __init__(self, name: str, total: int | None) -> None:
        self.name, self.total = name, total
        # The first advance tells what was done before this run, which says nothing about its speed.
        self._first: tuple[int, float] | None = None
        self._last = (0, 0.0)

    @property
    def done(self) -> int:
        """How much was done when the step last advanced."""
        return self._last[0]

    def advance(self, done: int, now_s: float) -> None:
        """Note how much is done at a time in seconds."""
        self._last = (done, now_s)
        self._first = self._first or self._last

    def line(self, now_s: float, start_s: float) -> str:
        """Return the step's progress in one line: done and total, percent, rate and remaining time, as far as known.

        Args:
            now_s: The present time in seconds.
            start_s: When the step began.
        """
        if self._first is None or not self.total:
            return f"{self.name}: running for {_duration(now_s - start_s)}"
        (before, begun_s), (done, _) = self._first, self._last
        shown = f"{self.name}: {done:,} of {self.total:,} ({100 * done / self.total:.0f} %)"
        rate = (done - before) / max(now_s - begun_s, 1e-9)
        if rate <= 0:
            return shown
        return f"{shown}, {rate:.3g}/s, {_duration(max(self.total - done, 0) / rate)} left"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def note(message: str) -> None:
    """Print one line on stderr, so that stdout holds results alone."""
    click.echo(message, err=True)
