"""Tables on stdout."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from edgeembed.cli.output import escape_controls


def print_tables(renderable: RenderableType) -> None:
    """Print tables as wide as the terminal."""
    _Console().print(renderable)


class _Console(Console):
    """A console that escapes the control characters in what it prints, but not those of its own styles."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escape_controls(segment.text), segment.style)
