"""A comparison of two reports for people: in a terminal, and as Markdown."""

from rich.console import Group
from rich.text import Text

from edgeembed_bench.comparison import Change, Comparison
from edgeembed_bench.formats import MISSING, digits, megabytes, ratio
from edgeembed_bench.report import SubjectResult
from edgeembed_bench.show.markdown import escaped, markdown_table
from edgeembed_bench.show.tables import Table
from edgeembed_bench.show.terminal import rich_table

_ARROW = " → "


def comparison_table(comparison: Comparison) -> Group:
    """Lay a comparison out for a rich console: what changed, and what it takes to read it."""
    table = _table(comparison)
    notes = (Text(note, style="dim") for note in (table.reading, *_notes(comparison)))
    return Group(rich_table(table), *notes)


def comparison_markdown(comparison: Comparison) -> str:
    """Write a comparison as Markdown."""
    table = _table(comparison)
    bullets = "\n".join(f"- {escaped(note)}" for note in _notes(comparison))
    parts = ["# What changed", markdown_table(table), escaped(table.reading), bullets]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(comparison: Comparison) -> Table:
    columns = ("subject", "ms", "× before", "× before, beside the baseline", "start ms", "MB", "resident MB", "quality")  # noqa: RUF001  # times
    reading = (
        "Before → after. The two were not measured in turns: × before holds the machine's drift between them, which "  # noqa: RUF001
        "cancels beside the baseline."
    )
    return Table("Changes", columns, tuple(map(_row, comparison.changes)), reading)


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
        _ARROW.join(_quality(each) for each in pair),
    )


def _quality(result: SubjectResult) -> str:
    return " ".join(digits(score) for score in result.quality.values()) or MISSING


def _notes(comparison: Comparison) -> list[str]:
    return [
        *(f"not alike: {difference}" for difference in comparison.unlike),
        *(
            f"{change.name} changed: {', '.join(change.differs_in)}"
            for change in comparison.changes
            if change.differs_in
        ),
        *(f"only before: {name}" for name in comparison.only_before),
        *(f"only after: {name}" for name in comparison.only_after),
    ]
