"""How a subject's latency stands beside the baseline's, in figures and in a word."""

from edgeembed_bench.report import BenchReport
from edgeembed_bench.verdicts import Verdict


def standings(report: BenchReport) -> dict[str, Verdict]:
    """Compare all subjects with the baseline.

    Args:
        report: What a run found.

    Returns:
        The verdict on each but the baseline, by name.
    """
    return {subject.name: report.verdict(subject.name) for subject in report if subject.name != report.baseline}


def word(found: Verdict) -> str:
    """Say in a word what a verdict says, for a table."""
    if found.differs is None:
        return "not tested"
    if not found.differs:
        return "no difference"
    return "faster" if found.ratio.value < 1 else "slower"
