"""All that is shown of a report, whichever way it is shown."""

from collections.abc import Mapping
from dataclasses import dataclass

from edgeembed_bench.report import BenchReport
from edgeembed_bench.show.findings import findings
from edgeembed_bench.show.notes import notes
from edgeembed_bench.show.standings import standings
from edgeembed_bench.show.tables import Table, tables


@dataclass(frozen=True)
class Contents:
    """What a report says, as text.

    Attributes:
        findings: A line for each subject.
        tables: The figures by theme.
        notes: Lines below them by heading.
    """

    findings: Mapping[str, str]
    tables: list[Table]
    notes: Mapping[str, list[str]]


def contents(report: BenchReport) -> Contents:
    """Put a report into words and rows.

    Args:
        report: What a run found.
    """
    beside = standings(report)
    return Contents(findings(report, beside), tables(report, beside), notes(report, beside))
