"""Reports and tables for a terminal of any width."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from edgeembed_runtime.errors import one_line
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from edgeembed_bench.compare import Comparison
from edgeembed_bench.render.summary import build_content
from edgeembed_bench.render.tables import Table, comparison_notes, comparison_table
from edgeembed_bench.report import BenchmarkReport

_GAP = 2  # spaces before a column
_MAX_NAME_WIDTH = 26


def terminal_report(report: BenchmarkReport) -> Group:
    """Render a report for a terminal: tables, notes, and at the end, where the reader looks, warnings and summary.

    Args:
        report: The report.

    Returns:
        A renderable for a rich console.
    """
    content = build_content(report)
    return Group(
        terminal_tables(content.tables),
        *(part for heading, lines in content.notes.items() for part in _section(heading, lines, style="dim")),
        *_section("Warnings", content.warnings),
        *_section("Summary", content.summary.values()),
    )


def terminal_tables(tables: Iterable[Table]) -> Group:
    """Render tables for a terminal, one below the other, each followed by its legend.

    Args:
        tables: The tables.

    Returns:
        A renderable for a rich console.
    """
    parts: list[RenderableType] = []
    for table in tables:
        parts += [FittedTable(table), Text(table.legend, style="dim"), Text()]
    return Group(*parts)


def terminal_comparison(comparison: Comparison) -> Group:
    """Render a comparison for a terminal: a table, its legend, and further differences.

    Args:
        comparison: The comparison.

    Returns:
        A renderable for a rich console.
    """
    table = comparison_table(comparison)
    return terminal_document(table, [table.legend, *comparison_notes(comparison)])


def terminal_document(table: Table, notes: Iterable[str]) -> Group:
    """Render a table for a terminal, followed by notes.

    Args:
        table: The table; its legend is not shown.
        notes: The notes, one line each.

    Returns:
        A renderable for a rich console.
    """
    return Group(FittedTable(table), *(Text(one_line(note), style="dim") for note in notes))


@dataclass(frozen=True)
class FittedTable:
    """A table that splits into several, one below the other, if the terminal is too narrow for all columns.

    No cell is truncated. A header takes one line, unless it is wider than the terminal.

    Attributes:
        table: The table.
    """

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the parts of the table."""
        widths = self._column_widths(options.max_width)
        for columns in self._split(widths, options.max_width):
            yield self._part(columns, widths, options.max_width)

    def _part(self, columns: Sequence[int], widths: Sequence[int], width: int) -> RichTable:
        table = self.table
        part = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        minimum, preferred = self._name_widths()
        taken = sum(widths[column] + _GAP for column in columns)
        part.add_column(Text(table.title), width=max(minimum, min(preferred, width - taken - 1)), overflow="fold")
        for column in columns:
            header = Text("\n".join(textwrap.wrap(table.columns[column], widths[column])))
            part.add_column(header, justify="right", vertical="bottom", width=widths[column], no_wrap=True)
        for row in table.rows:
            part.add_row(Text(row[0]), *(Text(row[column]) for column in columns))
        return part

    def _split(self, widths: Sequence[int], width: int) -> list[list[int]]:
        """Distribute the columns over tables that fit the width; each table repeats the names."""
        room = width - self._name_widths()[0] - 1
        parts: list[list[int]] = [[]]
        left = room
        for column in range(1, len(self.table.columns)):
            needed = widths[column] + _GAP
            if parts[-1] and needed > left:
                parts.append([])
                left = room
            parts[-1].append(column)
            left -= needed
        return parts

    def _name_widths(self) -> tuple[int, int]:
        """Return the minimum and the preferred width of the names, which wrap between words."""
        texts = [self.table.title, *(row[0] for row in self.table.rows)]
        words = " ".join(texts).split()
        return min(_MAX_NAME_WIDTH, max(map(len, words))), min(_MAX_NAME_WIDTH, max(map(len, texts)))

    def _column_widths(self, width: int) -> list[int]:
        """Return the width of each column: that of its widest cell or, if wider, of its header."""
        room = width - self._name_widths()[0] - 1 - _GAP
        cells = [max((len(cell) for cell in column), default=0) for column in zip(*self.table.rows, strict=True)]
        return [
            max(widest, len(header) if len(header) <= room else max(map(len, textwrap.wrap(header, max(room, 1)))))
            for header, widest in zip(self.table.columns, cells, strict=True)
        ]


def _section(heading: str, lines: Iterable[str], style: str = "") -> Iterator[RenderableType]:
    texts = list(lines)
    if not texts:
        return
    yield Text(heading, style="bold")
    for text in texts:
        yield Padding(Text(text, style=style), (0, 0, 0, 2))
    yield Text()
