"""How a subject's latency stands beside the baseline's, in figures and in a word."""

from dataclasses import dataclass

from edgeembed_bench.estimates import Estimate
from edgeembed_bench.report import BenchReport
from edgeembed_bench.verdicts import Verdict


@dataclass(frozen=True)
class Standing:
    """One subject beside the baseline.

    Attributes:
        ratio: Its median latency as a multiple of the baseline's.
        verdict: Whether the two can be told apart.
    """

    ratio: Estimate
    verdict: Verdict

    @property
    def word(self) -> str:
        """What the verdict says, for a table."""
        if self.verdict.differs is None:
            return "not tested"
        if not self.verdict.differs:
            return "no difference"
        return "faster" if self.ratio.value < 1 else "slower"


def standings(report: BenchReport) -> dict[str, Standing]:
    """Set all subjects beside the baseline; that resamples, so it is done once and handed on.

    Args:
        report: What a run found.

    Returns:
        The standing of each but the baseline, by name.
    """
    others = [subject.name for subject in report if subject.name != report.baseline]
    return {name: Standing(report.latency_ratio(name), report.verdict(name)) for name in others}
