"""What the bench found, for people: in a terminal, as Markdown, as a page."""

from edgeembed_bench.show.changes import comparison_markdown, comparison_table
from edgeembed_bench.show.filled import form_table
from edgeembed_bench.show.markdown import report_markdown, tables_markdown
from edgeembed_bench.show.page import report_page
from edgeembed_bench.show.tables import Table
from edgeembed_bench.show.terminal import report_table, tables_below_each_other

__all__ = [
    "Table",
    "comparison_markdown",
    "comparison_table",
    "form_table",
    "report_markdown",
    "report_page",
    "report_table",
    "tables_below_each_other",
    "tables_markdown",
]
