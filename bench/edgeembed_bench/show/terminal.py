"""A report for a terminal."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from edgeembed_bench.report import BenchReport
from edgeembed_bench.show.contents import contents
from edgeembed_bench.show.tables import Table

_BETWEEN = 2  # blanks before a column
_NAME_WIDTH = 26  # leaves room for the widest table in a terminal of 100 columns


def report_table(report: BenchReport) -> Group:
    """Lay a report out: tables by theme, and what it takes to read them below.

    Args:
        report: What a run found.

    Returns:
        All of it, for a rich console.
    """
    shown = contents(report)
    return Group(tables_below_each_other(shown.tables), *_notes(shown.notes))


def tables_below_each_other(tables: Iterable[Table]) -> Group:
    """Lay tables out, with how to read each below it.

    Args:
        tables: The tables.
    """
    parts: list[RenderableType] = []
    for table in tables:
        parts += [rich_table(table), Text(table.reading, style="dim"), Text()]
    return Group(*parts)


@dataclass(frozen=True)
class FittingTable:
    """A table that is cut into several, one below the other, where the terminal is too narrow: no figure is ever cut.

    Attributes:
        table: The table.
    """

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give as many tables as it takes."""
        for columns in _fitting(self.table, options.max_width):
            yield _rich_table(self.table, columns, options.max_width)


def rich_table(table: Table) -> FittingTable:
    """Lay out one table.

    Args:
        table: The table.
    """
    return FittingTable(table)


def _rich_table(table: Table, columns: Sequence[int], width: int) -> RichTable:
    made = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    widths = [_width(table, column) for column in columns]
    least, most = _name_widths(table)
    name_width = max(least, min(most, width - sum(widths) - _BETWEEN * len(widths) - 1))
    made.add_column(table.title.lower(), width=name_width, overflow="fold")
    for column, each in zip(columns, widths, strict=True):
        title = Text("\n".join(textwrap.wrap(table.columns[column], each)))
        made.add_column(title, justify="right", vertical="bottom", width=each, no_wrap=True)
    for row in table.rows:
        made.add_row(Text(row[0]), *(Text(row[column]) for column in columns))
    return made


def _fitting(table: Table, width: int) -> list[list[int]]:
    """Share the columns out over tables of at most that width, each with the names."""
    room = width - _name_widths(table)[0] - 1
    shares: list[list[int]] = [[]]
    left = room
    for column in range(1, len(table.columns)):
        needed = _width(table, column) + _BETWEEN
        if shares[-1] and needed > left:
            shares.append([])
            left = room
        shares[-1].append(column)
        left -= needed
    return shares


def _name_widths(table: Table) -> tuple[int, int]:
    """Give the least and the best width for the names, which break between their words."""
    texts = [table.title, *(row[0] for row in table.rows)]
    least, best = (min(_NAME_WIDTH, max(map(len, found))) for found in (" ".join(texts).split(), texts))
    return least, best


def _width(table: Table, column: int) -> int:
    """Give the width of a column: that of its widest figure, or of a word of its title."""
    title = table.columns[column]
    figures = max(len(row[column]) for row in table.rows)
    return max(figures, *map(len, title.split()))


def _notes(notes: Mapping[str, list[str]]) -> Iterator[RenderableType]:
    for heading, lines in notes.items():
        yield Text(heading.lower(), style="bold")
        for line in lines:
            yield Padding(Text(line, style="dim"), (0, 0, 0, 2))
