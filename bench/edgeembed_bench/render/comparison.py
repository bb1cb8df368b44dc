"""Comparisons of two reports, for a terminal and as Markdown."""

from rich.console import Group
from rich.text import Text

from edgeembed_bench.compare import Change, Comparison
from edgeembed_bench.formats import MISSING, digits, megabytes, ratio
from edgeembed_bench.render.markdown import escape, markdown_list, markdown_table
from edgeembed_bench.render.tables import Table
from edgeembed_bench.render.terminal import FittedTable
from edgeembed_bench.results import SubjectResult

_ARROW = " → "


def terminal_comparison(comparison: Comparison) -> Group:
    """Render a comparison for a terminal: a table, its legend, and further differences.

    Args:
        comparison: The comparison.

    Returns:
        A renderable for a rich console.
    """
    table = _table(comparison)
    notes = (Text(note, style="dim") for note in (table.legend, *_notes(comparison)))
    return Group(FittedTable(table), *notes)


def markdown_comparison(comparison: Comparison) -> str:
    """Render a comparison as Markdown.

    Args:
        comparison: The comparison.

    Returns:
        The document, ending in a newline.
    """
    table = _table(comparison)
    parts = ["# Benchmark comparison", markdown_table(table), escape(table.legend), markdown_list(_notes(comparison))]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(comparison: Comparison) -> Table:
    columns = ("subject", "ms", "ratio", "adjusted ratio", "start ms", "MB", "resident MB", "quality")
    legend = (
        "Before → after. ms: median latency of one text; ratio: latency after divided by latency before, which "
        "includes any drift of the machine between the two runs; adjusted ratio: the same for the latency relative to "
        "the baseline, in which such a drift cancels; start ms: median cold start; quality: score per task"
    )
    return Table("Changes", columns, tuple(map(_row, comparison.changes)), legend)


def _row(change: Change) -> tuple[str, ...]:
    pair = (change.before, change.after)
    return (
        change.name,
        _ARROW.join(digits(each.latency.median) for each in pair),
        ratio(change.latency_ratio),
        MISSING if change.relative_ratio is None else ratio(change.relative_ratio),
        _ARROW.join(digits(each.start_ms.median) for each in pair),
        _ARROW.join(megabytes(each.size.size_bytes) for each in pair),
        _ARROW.join(megabytes(each.resident_bytes) for each in pair),
        _ARROW.join(_scores(each) for each in pair),
    )


def _scores(result: SubjectResult) -> str:
    return " ".join(digits(score) for score in result.quality.values()) or MISSING


def _notes(comparison: Comparison) -> list[str]:
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
