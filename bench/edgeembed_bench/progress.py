"""A progress bar on stderr."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import Progress


@contextlib.contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr within a `with` block, if stderr is a terminal.

    Args:
        total: Number of steps.

    Yields:
        A function that advances the bar by a number of steps.
    """
    console = Console(stderr=True)
    hidden = not console.is_terminal
    # Redrawn on advance only: a thread that redraws would take CPU time from the subjects.
    with Progress(console=console, auto_refresh=False, transient=True, disable=hidden) as bar:
        task = bar.add_task("measuring", total=total)

        def advance(steps: int) -> None:
            bar.advance(task, steps)
            bar.refresh()

        yield advance
