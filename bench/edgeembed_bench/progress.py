"""How far a measurement is, on stderr where that is a terminal."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import Progress


@contextlib.contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar for the length of a `with` block.

    Args:
        total: How many steps there are.

    Yields:
        What to tell how many more steps are done.
    """
    console = Console(stderr=True)
    hidden = not console.is_terminal
    # Drawn between turns alone: a thread that redraws would take its time from the subjects.
    with Progress(console=console, auto_refresh=False, transient=True, disable=hidden) as bar:
        task = bar.add_task("measuring", total=total)

        def advance(steps: int) -> None:
            bar.advance(task, steps)
            bar.refresh()

        yield advance
