"""Fill the generated parts of the pages in docs/results from the files beside them.

python -m experiments.result_pages

Everything between two marks of a page is replaced: summary, warnings, tables and notes of a benchmark's report, or a
table of scores (`experiments.score_tables`).
"""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click
from edgeembed_bench import read_report
from edgeembed_bench.render.markdown import escape, markdown_table
from edgeembed_bench.render.summary import Content, build_content
from edgeembed_bench.report import BenchmarkReport

from experiments.score_tables import fill_tables, pages_of_scores

RESULTS = Path(__file__).parents[1] / "docs/results"
BEGIN = "<!-- begin: written by python -m experiments.result_pages -->"
END = "<!-- end -->"


@dataclass(frozen=True)
class ResultPage:
    """A page with a generated part.

    Attributes:
        name: Name of the page and of its report, without the endings.
        tables: Titles of the tables to show.
        notes: Headings of the notes to show.
    """

    name: str
    tables: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def page(self) -> Path:
        """The Markdown file."""
        return RESULTS / f"{self.name}.md"

    @property
    def report(self) -> Path:
        """The JSON file of the report."""
        return RESULTS / f"{self.name}.json"


PAGES = (
    ResultPage("bench", ("Overview",), ("Method", "Machine")),
    ResultPage(
        "runtime",
        ("Limits", "Latency", "Call overhead", "Cold start", "Memory"),
        ("Method", "Machine", "Subjects"),
    ),
)


def fill_page(text: str, page: ResultPage, report: BenchmarkReport) -> str:
    """Return a page with its generated part filled from a report.

    Args:
        text: The page, with both marks.
        page: What to show.
        report: The report.

    Raises:
        ValueError: If a mark is missing.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page.name}.md lacks a mark; expected the line {BEGIN}, and below it {END}")
    return f"{before}{BEGIN}\n\n{_generated(page, build_content(report))}\n\n{END}{after}"


def _generated(page: ResultPage, content: Content) -> str:
    tables = {table.title: table for table in content.tables}
    parts = [_list(content.summary.values())]
    if content.warnings:
        parts += ["Warnings of the run:", _list(content.warnings)]
    for title in page.tables:
        if title in tables:
            parts += [f"### {title}", markdown_table(tables[title]), _wrap(escape(tables[title].legend))]
    parts += ["### This run", _list(line for heading in page.notes for line in content.notes.get(heading, ()))]
    return "\n\n".join(parts)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(_wrap(f"- {escape(line)}", indent="  ") for line in lines)


def _wrap(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


@click.command()
def command() -> None:
    """Fill the pages of the files that exist."""
    for page in PAGES:
        if page.report.is_file():
            filled = fill_page(page.page.read_text(encoding="utf-8"), page, read_report(page.report))
            page.page.write_text(filled, encoding="utf-8")
            click.echo(page.page)
    for name, tables in pages_of_scores().items():
        file = RESULTS / f"{name}.md"
        file.write_text(fill_tables(file.read_text(encoding="utf-8"), tables), encoding="utf-8")
        click.echo(file)


if __name__ == "__main__":
    command()
