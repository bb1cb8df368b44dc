"""A report for a terminal."""

from collections.abc import Iterator, Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from edgeembed_bench.report import BenchReport
from edgeembed_bench.show.contents import contents
from edgeembed_bench.show.tables import Table

_NAME_WIDTH = 26  # leaves room for the widest table in a terminal of 100 columns


def report_table(report: BenchReport) -> Group:
    """Lay a report out: tables by theme, and what it takes to read them below.

    Args:
        report: What a run found.

    Returns:
        All of it, for a rich console.
    """
    shown = contents(report)
    parts: list[RenderableType] = []
    for table in shown.tables:
        parts += [rich_table(table), Text(table.reading, style="dim"), Text()]
    return Group(*parts, *_notes(shown.notes))


def rich_table(table: Table) -> RichTable:
    """Lay out one table.

    Args:
        table: The table.
    """
    made = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    words = " ".join(row[0] for row in table.rows).split()
    longest = min(_NAME_WIDTH, max(map(len, words), default=1))  # a name breaks between its words
    made.add_column(table.title.lower(), min_width=longest, max_width=_NAME_WIDTH, overflow="fold")
    for title, *figures in list(zip(table.columns, *table.rows, strict=True))[1:]:
        whole = all(" " not in text for text in (title, *figures))  # a figure is never broken
        made.add_column(Text(title), justify="right", vertical="bottom", no_wrap=whole)
    for row in table.rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def _notes(notes: Mapping[str, list[str]]) -> Iterator[RenderableType]:
    for heading, lines in notes.items():
        yield Text(heading.lower(), style="bold")
        for line in lines:
            yield Padding(Text(line, style="dim"), (0, 0, 0, 2))
