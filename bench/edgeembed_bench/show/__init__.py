"""A report for people: in a terminal, as Markdown, as a page."""

from edgeembed_bench.show.markdown import report_markdown
from edgeembed_bench.show.page import report_page
from edgeembed_bench.show.terminal import report_table

__all__ = ["report_markdown", "report_page", "report_table"]
