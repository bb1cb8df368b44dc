"""Progress on stderr: a bar on a terminal where a step takes long, a line a step elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from edgeembed.progress import Advance

_PATIENCE_S = 2.0


class TerminalReporter:
    """Shows steps to a person.

    Args:
        quiet: Whether to say nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.console = Console(stderr=True, quiet=quiet)

    @contextmanager
    def step(self, name: str, total: int | None = None) -> Iterator[Advance]:
        """Enter a step; a bar appears once it has taken two seconds."""
        start = time.perf_counter()
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        bar = Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        task = bar.add_task(name, total=total)

        def advance(done: int) -> None:
            bar.update(task, completed=done)
            if time.perf_counter() - start > _PATIENCE_S and not bar.live.is_started:
                bar.start()

        try:
            yield advance
        finally:
            bar.stop()
        count = f"{total:,} in " if total else ""
        self.console.print(f"{name}: {count}{time.perf_counter() - start:.1f} s", highlight=False)


def note(message: str) -> None:
    """Say something on stderr, where it is in no result's way."""
    click.echo(message, err=True)
