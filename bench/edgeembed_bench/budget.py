"""Limits that a model has to keep: a check for CI."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from edgeembed_runtime.errors import InputError

from edgeembed_bench.report import BenchReport
from edgeembed_bench.stats import Estimate
from edgeembed_bench.subjects import Subject


@dataclass(frozen=True)
class Budget:
    """What a model may cost, and must be worth. A limit that is None is not checked.

    Attributes:
        max_latency_ratio: Its median latency as a multiple of the baseline's.
        max_mb: The files that it runs from, in 10^6 bytes.
        min_quality: Its mean score as percent of the baseline's.
    """

    max_latency_ratio: float | None = None
    max_mb: float | None = None
    min_quality: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no limit: whatever is compared with nan passes."""
        for name, limit in asdict(self).items():
            if limit is not None and not (math.isfinite(limit) and limit >= 0):
                raise InputError(f"{name}: {limit} given; expected a number of at least 0")

    def check_sizes(self, subjects: Sequence[Subject]) -> None:
        """Refuse a limit on the size of what has none, before anything is measured.

        Args:
            subjects: The subjects that are checked.

        Raises:
            InputError: If one of them names no files.
        """
        unknown = [subject.name for subject in subjects if subject.adapter in {"function", "nothing"}]
        if self.max_mb is not None and unknown:
            _measured(None, unknown[0], "--max-mb", "it names no files")

    def failures(self, report: BenchReport, names: Sequence[str]) -> list[str]:
        """Give a line for each limit that a subject does not keep.

        Args:
            report: What was measured.
            names: The subjects that are checked.

        Raises:
            InputError: If a limit is on something that was not measured.
        """
        return [line for name in names for line in self._failures(report, name)]

    def _failures(self, report: BenchReport, name: str) -> Iterator[str]:
        if self.max_latency_ratio is not None:
            ratio = report.latency_ratio(name)
            if ratio.value > self.max_latency_ratio:
                yield (
                    f"{name}: {ratio.value:.3f} times the latency of {report.baseline} ({_interval(ratio)}), "
                    f"more than {self.max_latency_ratio:g}"
                )
        if self.max_mb is not None:
            size_mb = _measured(report[name].size.size_bytes, name, "--max-mb", "it names no files") / 1e6
            if size_mb > self.max_mb:
                yield f"{name}: {size_mb:.2f} MB, more than {self.max_mb:g}"
        if self.min_quality is not None:
            percent = _measured(report.quality_percent(name), name, "--min-quality", "give --sts or --retrieval")
            if percent < self.min_quality:
                yield f"{name}: {percent:.1f} % of the quality of {report.baseline}, less than {self.min_quality:g}"


def _interval(ratio: Estimate) -> str:
    if ratio.low is None or ratio.high is None:
        return f"no 95 % interval: {ratio.reason}"
    return f"95 %: {ratio.low:.3f} to {ratio.high:.3f}"


def _measured(value: float | None, name: str, limit: str, why: str) -> float:
    if value is None:
        raise InputError(f"{limit} cannot be checked for {name}: not measured; {why}")
    return value
