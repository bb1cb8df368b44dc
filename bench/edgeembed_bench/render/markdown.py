"""Reports and tables as Markdown, for a README or an issue."""

import io
import re
from collections.abc import Iterable

from edgeembed_runtime.errors import one_line
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from edgeembed_bench.compare import Comparison
from edgeembed_bench.render.summary import build_content
from edgeembed_bench.render.tables import Table, comparison_notes, comparison_table
from edgeembed_bench.report import BenchmarkReport

# Characters that would end a cell or start a link, code, emphasis or a tag; an underscore inside a word does not.
_SPECIAL = re.compile(r"([\\|`*\[\]<&]|\b_|_\b)")
_UNLIMITED = 10_000  # rich wraps at this width; a row of a Markdown table is one line


def markdown_report(report: BenchmarkReport) -> str:
    """Render a report as Markdown: summary, warnings, tables and notes.

    Args:
        report: The report.

    Returns:
        The document, ending in a newline.
    """
    content = build_content(report)
    parts = ["# Benchmark report", markdown_list(content.summary.values())]
    if content.warnings:
        parts += ["## Warnings", markdown_list(content.warnings)]
    parts.append(markdown_tables(content.tables))
    for heading, lines in content.notes.items():
        parts += [f"## {heading}", markdown_list(lines)]
    return "\n\n".join(parts) + "\n"


def markdown_comparison(comparison: Comparison) -> str:
    """Render a comparison as Markdown.

    Args:
        comparison: The comparison.

    Returns:
        The document, ending in a newline.
    """
    return markdown_document("Benchmark comparison", comparison_table(comparison), comparison_notes(comparison))


def markdown_document(title: str, table: Table, notes: Iterable[str]) -> str:
    """Render a title, one table with its legend, and notes as Markdown.

    Args:
        title: The title.
        table: The table.
        notes: The notes, one line each.

    Returns:
        The document, ending in a newline.
    """
    parts = [f"# {escape(title)}", markdown_table(table), escape(table.legend), markdown_list(notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_tables(tables: Iterable[Table]) -> str:
    """Render tables as Markdown, each with its title above and its legend below.

    Args:
        tables: The tables.

    Returns:
        The text, without a newline at its end.
    """
    return "\n\n".join(f"## {each.title}\n\n{markdown_table(each)}\n\n{escape(each.legend)}" for each in tables)


def markdown_table(table: Table) -> str:
    """Render one table as Markdown.

    Args:
        table: The table.

    Returns:
        The text, without a newline at its end.
    """
    rendered = RichTable(box=box.MARKDOWN)
    for position, header in enumerate(table.columns):
        rendered.add_column(Text(escape(header)), justify="right" if position else "left")
    for row in table.rows:
        rendered.add_row(*(Text(escape(cell)) for cell in row))
    output = io.StringIO()
    Console(file=output, width=_UNLIMITED, color_system=None, force_jupyter=False).print(rendered)
    return "\n".join(line.strip() for line in output.getvalue().splitlines() if line.strip())


def markdown_list(lines: Iterable[str]) -> str:
    """Render lines of plain text as a bullet list.

    Args:
        lines: The lines.

    Returns:
        The text, without a newline at its end.
    """
    return "\n".join(f"- {escape(line)}" for line in lines)


def escape(text: str) -> str:
    """Escape plain text for Markdown.

    Args:
        text: The text, such as a name chosen by a user.

    Returns:
        The text on one line; Markdown shows it unchanged.
    """
    return _SPECIAL.sub(r"\\\1", one_line(text))
