"""Tables of a report as text, shared by the terminal, Markdown and HTML renderers."""

from collections.abc import Mapping
from dataclasses import dataclass

from edgeembed_bench.formats import MISSING, NOT_MEASURED, bounds, fixed
from edgeembed_bench.render.columns import Column, build_columns
from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.stats import SignificanceTest


@dataclass(frozen=True)
class Table:
    """A table with one row per subject.

    Attributes:
        title: Title of the table.
        columns: Column headers; the first is "subject".
        rows: One row per subject: its name, then one cell per other column.
        legend: Meaning of the columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: str


def build_tables(report: BenchmarkReport, tests: Mapping[str, SignificanceTest]) -> list[Table]:
    """Build the tables of a report; columns and tables without any data are left out.

    Args:
        report: The report.
        tests: Latency comparison with the baseline, by subject name.

    Returns:
        The tables, the overview first.
    """
    columns = build_columns(report, tests)
    sweep = (
        "median milliseconds per text; the header is the length of the text in tokens, counted by the tokenizer of "
        f"{report.texts.counted_by}; *: truncated to the subject's maximum length"
    )
    built = [_table(report, title, group, {"Latency by length": sweep}) for title, group in columns.items()]
    return [table for table in [*built, *_limits(report)] if len(table.columns) > 1]


def _table(report: BenchmarkReport, title: str, columns: list[Column], legends: Mapping[str, str]) -> Table:
    cells = {column: [column.write(subject) for subject in report] for column in columns}
    kept = [column for column, texts in cells.items() if not {MISSING, NOT_MEASURED}.issuperset(texts)]
    rows = [*zip([subject.name for subject in report], *(cells[column] for column in kept), strict=True)]
    if (floor := report.floor) is not None and any(column.write_floor for column in kept):
        floor_cells = [column.write_floor(floor) if column.write_floor else MISSING for column in kept]
        rows.insert(0, (floor.subject.name, *floor_cells))
    meanings = [f"{column.title}: {column.meaning}" for column in kept if column.meaning]
    headers = ("subject", *(column.title for column in kept))
    return Table(title, headers, tuple(rows), "; ".join(meanings) or legends.get(title, ""))


def _limits(report: BenchmarkReport) -> list[Table]:
    """Return a table with a row per limit and subject, if there are limits."""
    rows = [
        (
            check.subject,
            check.quantity,
            fixed(check.measured.value, 2),
            bounds(check.measured, 2),
            f"{check.limit:g}",
            "NO" if check.is_exceeded else "yes" if check.is_certain else "unclear",
        )
        for check in report.limit_checks()
    ]
    legend = (
        'kept: "unclear" if the 95 % interval contains the limit, or if there is no interval and the value keeps the '
        'limit; only "NO" fails the run'
    )
    columns = ("subject", "quantity", "measured", "95 % CI", "limit", "kept")
    return [Table("Limits", columns, tuple(rows), legend)] if rows else []
