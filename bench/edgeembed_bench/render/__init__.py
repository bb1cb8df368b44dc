"""Reports and comparisons of the benchmark, rendered for a terminal, as Markdown and as HTML."""

from edgeembed_bench.render.html import html_report
from edgeembed_bench.render.markdown import markdown_comparison, markdown_report, markdown_tables
from edgeembed_bench.render.tables import Table
from edgeembed_bench.render.terminal import terminal_comparison, terminal_report, terminal_tables

__all__ = [
    "Table",
    "html_report",
    "markdown_comparison",
    "markdown_report",
    "markdown_tables",
    "terminal_comparison",
    "terminal_report",
    "terminal_tables",
]
