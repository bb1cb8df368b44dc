"""Reports of the benchmark: all samples, comparisons with the baseline and the floor, and limits."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from edgeembed_runtime.errors import InputError

from edgeembed_bench.budget import CALL_OVERHEAD, NO_PARTS, SIZE, Budget, LimitCheck
from edgeembed_bench.machine import Load, Machine
from edgeembed_bench.renderable import Renderable
from edgeembed_bench.results import FloorResult, SubjectResult
from edgeembed_bench.stats import Interval, SignificanceTest, compare_times, paired_ratio, ratio_interval
from edgeembed_bench.workload import BenchmarkSettings, TextInfo


@dataclass(frozen=True, repr=False)
class BenchmarkReport(Renderable):
    """Everything that one run of the benchmark measured.

    `to_json`, `to_markdown` and `to_html` return it as text and write files; a notebook shows its tables and plots.

    Attributes:
        created_utc: Time of the run, ISO 8601.
        machine: The machine.
        load: Load of the machine by other work.
        cores: The cores that every process was pinned to; None where the system cannot pin processes.
        settings: The settings, with the numbers of runs rounded up and the lengths that were measured.
        texts: The texts.
        baseline: Name of the subject that the others are compared with.
        subjects: The results of each subject.
        floor: Cold starts of a process that only imports packages; None if not measured.
        left_out: Reason for each subject that was not measured, by name.
        budget: Limits on cost and quality.
        budgeted: Names of the subjects that the limits apply to.
    """

    created_utc: str
    machine: Machine
    load: Load
    cores: tuple[int, ...] | None
    settings: BenchmarkSettings
    texts: TextInfo
    baseline: str
    subjects: tuple[SubjectResult, ...]
    floor: FloorResult | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    budgeted: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return one line for the report and one per subject: latency, size and, if measured, quality."""
        lines = [f"BenchmarkReport: subjects {len(self.subjects)}, baseline {self.baseline}"]
        for subject in self:
            ratio = "" if subject.name == self.baseline else f" (ratio {self.latency_ratio(subject.name).value:.3g})"
            size, quality = subject.size.size_bytes, self.mean_quality(subject.name)
            facts = [
                f"{subject.latency.median:.3g} ms per text{ratio}",
                "" if size is None else f"{size / 1e6:.3g} MB",
                "" if quality is None else f"quality {quality:.1f}",
            ]
            lines.append(f"  {subject.name}: {', '.join(fact for fact in facts if fact)}")
        return "\n".join(lines)

    def __getitem__(self, name: str) -> SubjectResult:
        for subject in self.subjects:
            if subject.name == name:
                return subject
        raise InputError(f"no subject {name!r} in the report; expected one of: {', '.join(each.name for each in self)}")

    def __iter__(self) -> Iterator[SubjectResult]:
        return iter(self.subjects)

    def latency_ratio(self, name: str) -> Interval:
        """Return a subject's latency divided by the baseline's on the same texts, with its 95 % interval.

        It is the geometric mean over processes of the median ratio over texts, which `compare_latency` tests.

        Args:
            name: The subject's name.

        Raises:
            InputError: If the report has no such subject.
        """
        return paired_ratio(self._latencies(name), self._latencies(self.baseline))

    def compare_latency(self, name: str) -> SignificanceTest:
        """Return the significance test of a subject's latency against the baseline's.

        Args:
            name: The subject's name.

        Raises:
            InputError: If the report has no such subject.
        """
        return compare_times(self._latencies(name), self._latencies(self.baseline))

    def start_ratio(self, name: str) -> Interval | None:
        """Return a subject's cold start divided by the floor's, with its 95 % interval; None without a floor.

        Args:
            name: The subject's name.
        """
        if self.floor is None:
            return None
        own, floor = ([start.total_ms for start in starts] for starts in (self[name].starts, self.floor.starts))
        return ratio_interval(own, floor)

    def memory_ratio(self, name: str) -> Interval | None:
        """Return a subject's resident memory after the first embedding divided by the floor's.

        Args:
            name: The subject's name.

        Returns:
            The ratio with its 95 % interval; None without a floor, or where the system does not report memory.
        """
        if self.floor is None:
            return None
        own, floor = (
            [start.resident_bytes or 0 for start in starts] for starts in (self[name].starts, self.floor.starts)
        )
        return ratio_interval(own, floor) if all(own) and all(floor) else None

    def sentences_per_s(self, name: str) -> float | None:
        """Return the throughput in sentences per second, from the median time of a full batch; None if not measured."""
        times = self[name].batches_ms
        return self.settings.batch_size / statistics.median(times) * 1e3 if times else None

    @property
    def tasks(self) -> list[str]:
        """The tasks on which at least one subject has a score."""
        return list(dict.fromkeys(task for subject in self.subjects for task in subject.quality))

    def mean_quality(self, name: str) -> float | None:
        """Return a subject's mean score over all tasks; None if a score is missing, or there are no tasks."""
        quality = self[name].quality
        if not self.tasks or any(task not in quality for task in self.tasks):
            return None
        return statistics.fmean(quality[task] for task in self.tasks)

    def quality_percent(self, name: str) -> float | None:
        """Return a subject's mean score in percent of the baseline's; None if either is missing."""
        score, baseline = self.mean_quality(name), self.mean_quality(self.baseline)
        return None if score is None or not baseline else 100 * score / baseline

    def with_quality(self, task: str, scores: Mapping[str, float]) -> "BenchmarkReport":
        """Return a copy of the report with the scores on one more task.

        Args:
            task: Name of the task, with its metric in parentheses, such as "stsb/dev (Spearman x100)".
            scores: The score, 0 to 100, by subject name; subjects without a score may be absent.
        """
        subjects = (
            replace(subject, quality=subject.quality | {task: scores[subject.name]})
            if subject.name in scores
            else subject
            for subject in self.subjects
        )
        return replace(self, subjects=tuple(subjects))

    def with_budget(self, budget: Budget, names: Sequence[str]) -> "BenchmarkReport":
        """Return a copy of the report with limits.

        Args:
            budget: The limits.
            names: Names of the subjects that the limits apply to.
        """
        return replace(self, budget=budget, budgeted=tuple(names))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as built-in types: all samples, and the statistics of each subject under "derived"."""
        from edgeembed_bench.report_io import report_dict  # imports this module

        return report_dict(self)

    def _markdown(self) -> str:
        from edgeembed_bench.render.markdown import markdown_report  # imports this module

        return markdown_report(self)

    def _html(self, *, is_page: bool) -> str:
        from edgeembed_bench.render.html import html_report  # imports this module

        return html_report(self, is_page=is_page)

    def limit_checks(self) -> list[LimitCheck]:
        """Return each limit with the measured value of each subject that it applies to."""
        return [check for name in self.budgeted for check in self._limit_checks(name)]

    def _limit_checks(self, name: str) -> Iterator[LimitCheck]:
        budget, subject = self.budget, self[name]
        size, quality = subject.size.size_bytes, self.quality_percent(name)
        no_floor = "the run has no floor" if self.floor is None else "this system does not report resident memory"
        if budget.max_latency_ratio is not None:
            ratio = self.latency_ratio(name)
            yield LimitCheck(name, f"latency (x {self.baseline})", ratio, budget.max_latency_ratio)
        if budget.max_mb is not None:
            megabytes = _exact(None if size is None else size / 1e6)
            unknown = (subject.size.reason or "its files are unknown") if megabytes is None else None
            yield LimitCheck(name, SIZE, megabytes, budget.max_mb, is_exact=True, reason=unknown)
        if budget.min_quality is not None:
            yield LimitCheck(
                name,
                f"quality (% of {self.baseline})",
                _exact(quality),
                budget.min_quality,
                is_minimum=True,
                is_exact=True,
                reason=None if quality is not None else self._unscored_reason(name),
            )
        for limit, quantity, measured, reason in (
            (budget.max_start_ratio, "cold start (x floor)", self.start_ratio(name), no_floor),
            (budget.max_memory_ratio, "resident memory (x floor)", self.memory_ratio(name), no_floor),
            (budget.max_overhead_us, CALL_OVERHEAD, subject.call_overhead_us, NO_PARTS),
        ):
            if limit is not None:
                yield LimitCheck(name, quantity, measured, limit, reason=reason if measured is None else None)

    def _unscored_reason(self, name: str) -> str:
        if not self.tasks:
            return "nothing was scored; pass sts or retrieval sets"
        unscored = next((each for each in (name, self.baseline) if self.mean_quality(each) is None), None)
        if unscored is None:
            return f"the mean score of {self.baseline} is 0"
        return f"{unscored} has no score on {next(task for task in self.tasks if task not in self[unscored].quality)}"

    def _latencies(self, name: str) -> list[tuple[float, ...]]:
        return [run.latency_ms for run in self[name].processes]


def _exact(value: float | None) -> Interval | None:
    return None if value is None else Interval(value, None, None)
