"""A report as Markdown, for a README or an issue."""

import io
import re
from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from edgeembed_bench.report import BenchReport
from edgeembed_bench.show.contents import contents
from edgeembed_bench.show.tables import Table

# What would end a cell, or begin a link, code, emphasis or a tag; an underscore within a word does not.
_SPECIAL = re.compile(r"([\\|`*\[\]<&]|\b_|_\b)")
_WIDE = 10_000  # so that rich wraps no row: a row of Markdown is a line


def report_markdown(report: BenchReport) -> str:
    """Write a report as Markdown: findings, tables by theme, and what it takes to read them.

    Args:
        report: What a run found.

    Returns:
        The document, ending in a line feed.
    """
    shown = contents(report)
    parts = ["# What these encoders cost", _bullets(f"{name}: {line}" for name, line in shown.findings.items())]
    parts += [tables_markdown(shown.tables)]
    for heading, lines in shown.notes.items():
        parts += [f"## {heading}", _bullets(lines)]
    return "\n\n".join(parts) + "\n"


def tables_markdown(tables: Iterable[Table]) -> str:
    """Write tables as Markdown, each with its heading and how to read it, without a line feed at the end.

    Args:
        tables: The tables.
    """
    return "\n\n".join(f"## {each.title}\n\n{markdown_table(each)}\n\n{escaped(each.reading)}" for each in tables)


def escaped(text: str) -> str:
    """Give a text that Markdown shows as it is, on one line.

    Args:
        text: What is to be shown, such as a name that a user chose.
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)


def markdown_table(table: Table) -> str:
    """Write one table as Markdown, without a line feed at its end.

    Args:
        table: The table.
    """
    made = RichTable(box=box.MARKDOWN)
    for position, title in enumerate(table.columns):
        made.add_column(Text(escaped(title)), justify="right" if position else "left")
    for row in table.rows:
        made.add_row(*(Text(escaped(cell)) for cell in row))
    written = io.StringIO()
    Console(file=written, width=_WIDE, color_system=None, force_jupyter=False).print(made)
    return "\n".join(line.strip() for line in written.getvalue().splitlines() if line.strip())
