"""Tables as text: cells, columns and whole tables, shared by the terminal, Markdown and HTML renderers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from edgeembed_runtime.errors import one_line
from edgeembed_runtime.report import valid_unicode

from edgeembed_bench.compare import Change, Comparison
from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.results import FloorResult, SubjectResult
from edgeembed_bench.stats import Interval, Quartiles

MISSING = "-"
NOT_MEASURED = "not measured"
_ARROW = " → "


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

    def __post_init__(self) -> None:
        """Escape unprintable characters: a report of another machine must not control this terminal."""
        object.__setattr__(self, "title", _escaped(self.title))
        object.__setattr__(self, "columns", tuple(map(_escaped, self.columns)))
        object.__setattr__(self, "rows", tuple(tuple(map(_escaped, row)) for row in self.rows))
        object.__setattr__(self, "legend", _escaped(self.legend))


def _escaped(text: str) -> str:
    return one_line(valid_unicode(text))


@dataclass(frozen=True)
class Column:
    """A column: its header, meaning and the functions that return its cells.

    Attributes:
        title: The header.
        write: Function that returns the cell of a subject.
        meaning: The column's part of the legend; empty if the header needs none.
        write_floor: Function that returns the cell of the floor; None if the floor has no such value.
    """

    title: str
    write: Callable[[SubjectResult], str]
    meaning: str = ""
    write_floor: Callable[[FloorResult], str] | None = None


def fill_table(report: BenchmarkReport, title: str, columns: list[Column], legend: str = "") -> Table:
    """Build a table with a row per subject, and one for the floor if a column has a value of it.

    Args:
        report: The report.
        title: Title of the table.
        columns: The columns; those without any data are left out.
        legend: Legend of a table whose columns have no meanings of their own.

    Returns:
        The table. Without any data, "subject" is its only column.
    """
    cells = {column: [column.write(subject) for subject in report] for column in columns}
    kept = [column for column, texts in cells.items() if not {MISSING, NOT_MEASURED}.issuperset(texts)]
    rows = [*zip([subject.name for subject in report], *(cells[column] for column in kept), strict=True)]
    if (floor := report.floor) is not None and any(column.write_floor for column in kept):
        floor_cells = [column.write_floor(floor) if column.write_floor else MISSING for column in kept]
        rows.insert(0, (floor.subject.name, *floor_cells))
    meanings = [f"{column.title}: {column.meaning}" for column in kept if column.meaning]
    headers = ("subject", *(column.title for column in kept))
    return Table(title, headers, tuple(rows), "; ".join(meanings) or legend)


def digits(value: float | None, precision: int = 3) -> str:
    """Format a number with `precision` significant digits."""
    if value is None:
        return MISSING
    return np.format_float_positional(value, precision=precision, fractional=False, trim="-")


def fixed(value: float | None, decimals: int) -> str:
    """Format a number with a fixed number of decimals."""
    return MISSING if value is None else f"{value:.{decimals}f}"


def counted(value: float | None) -> str:
    """Format a number without decimals, with thousands separators."""
    return MISSING if value is None else f"{value:,.0f}"


def megabytes(size_bytes: float | None) -> str:
    """Format bytes as megabytes of 10^6 bytes."""
    return MISSING if size_bytes is None else digits(size_bytes / 1e6)


def millions(count: int | None) -> str:
    """Format a count in millions."""
    return MISSING if count is None else f"{digits(count / 1e6)}M"


def quartiles(samples: Quartiles) -> str:
    """Format the first and the third quartile."""
    low, high = (digits(value, 3 if value >= 1 else 2) for value in (samples.q1, samples.q3))
    return f"{low}–{high}"  # noqa: RUF001  # a range takes an en dash


def ratio(value: float) -> str:
    """Format a ratio with three significant digits, or with two if it is at most 0.1."""
    return digits(value, 3 if value > 0.1 else 2)


def interval(ratios: Interval) -> str:
    """Format the 95 % confidence interval of a ratio."""
    if ratios.low is None or ratios.high is None:
        return MISSING
    return f"{ratio(ratios.low)}–{ratio(ratios.high)}"  # noqa: RUF001  # a range takes an en dash


def bounds(measured: Interval | None, decimals: int) -> str:
    """Format the bounds of a 95 % confidence interval with a fixed number of decimals."""
    if measured is None or measured.low is None or measured.high is None:
        return MISSING
    return f"{measured.low:.{decimals}f} to {measured.high:.{decimals}f}"  # not an en dash: a bound can be negative


def percent(value: float | None) -> str:
    """Format a percentage without decimals."""
    return MISSING if value is None else f"{value:.0f} %"


def median_or_not_measured(samples: Quartiles | None) -> str:
    """Format the median; "not measured" without samples."""
    return NOT_MEASURED if samples is None else digits(samples.median)


def quartiles_or_missing(samples: Quartiles | None) -> str:
    """Format the first and the third quartile; "-" without samples."""
    return MISSING if samples is None else quartiles(samples)


def comparison_table(comparison: Comparison) -> Table:
    """Build the table of a comparison: a row per subject of both reports, with the values before and after.

    Args:
        comparison: The comparison.
    """
    columns = ("subject", "ms", "ratio", "adjusted ratio", "start ms", "MB", "resident MB", "quality")
    legend = (
        "Before → after. ms: median latency of one text; ratio: latency after divided by latency before on the same "
        "texts (median over texts, geometric mean over processes), which includes any drift of the machine between the "
        "two runs; adjusted ratio: the same for the latency relative to the baseline, in which such a drift cancels; "
        "start ms: median cold start; quality: score per task"
    )
    return Table("Changes", columns, tuple(map(_changes, comparison.changes)), legend)


def _changes(change: Change) -> tuple[str, ...]:
    pair = (change.before, change.after)
    return (
        change.name,
        _ARROW.join(digits(each.latency.median) for each in pair),
        ratio(change.latency_ratio),
        MISSING if change.relative_ratio is None else ratio(change.relative_ratio),
        _ARROW.join(digits(each.start_ms.median) for each in pair),
        _ARROW.join(megabytes(each.size.size_bytes) for each in pair),
        _ARROW.join(megabytes(each.resident_bytes) for each in pair),
        _ARROW.join(_quality_scores(each) for each in pair),
    )


def _quality_scores(result: SubjectResult) -> str:
    return " ".join(digits(score) for score in result.quality.values()) or MISSING


def comparison_notes(comparison: Comparison) -> list[str]:
    """Return the differences of the reports that the table does not show, one line each.

    Args:
        comparison: The comparison.
    """
    return [
        *(f"machine or settings differ: {difference}" for difference in comparison.unlike),
        *(
            f"{change.name} changed: {', '.join(change.differs_in)}"
            for change in comparison.changes
            if change.differs_in
        ),
        *(f"only before: {name}" for name in comparison.only_before),
        *(f"only after: {name}" for name in comparison.only_after),
    ]
