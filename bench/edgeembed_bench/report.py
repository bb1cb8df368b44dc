"""What a run of the bench found: the raw samples, and the figures derived from them."""

import hashlib
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Self

from edgeembed_runtime.errors import InputError

from edgeembed_bench.energy import Energy
from edgeembed_bench.machine import Load, Machine
from edgeembed_bench.model_info import ModelInfo
from edgeembed_bench.plan import Plan
from edgeembed_bench.sizes import Size
from edgeembed_bench.stats import Estimate, Spread, quantile, spread
from edgeembed_bench.subjects import Subject
from edgeembed_bench.verdicts import Verdict, clustered_ratio, verdict
from edgeembed_bench.worker_client import Start


@dataclass(frozen=True)
class Settings(Plan):
    """A plan as it was carried out, and the texts.

    Attributes:
        texts_from: Where the texts come from.
        texts: Number of different texts.
        texts_sha256: Hash of the texts, a line feed between them.
        mean_characters: Their mean length.
        lengths_by: Name of the subject whose tokenizer counted the sweep's tokens; empty without a sweep.
    """

    texts_from: str = ""
    texts: int = 0
    texts_sha256: str = ""
    mean_characters: float = 0.0
    lengths_by: str = ""

    @classmethod
    def of(cls, plan: Plan, texts: Sequence[str], texts_from: str, *, lengths: Sequence[int], counted_by: str) -> Self:
        """Give the settings of a run.

        Args:
            plan: What it was to measure.
            texts: What was encoded.
            texts_from: Where that comes from.
            lengths: The lengths that texts could be made of.
            counted_by: Who counted their tokens.
        """
        shared = {
            "runs": plan.runs_a_process * plan.processes,
            "batches": plan.batches_a_process * plan.processes,
            "sweep_runs": plan.sweep_a_process * plan.processes if lengths else 0,
            "lengths": tuple(lengths),
        }
        return cls(
            **(asdict(plan) | shared),
            texts_from=texts_from,
            texts=len(texts),
            texts_sha256=hashlib.sha256("\n".join(texts).encode()).hexdigest(),
            mean_characters=statistics.fmean(map(len, texts)),
            lengths_by=counted_by,
        )


@dataclass(frozen=True)
class ProcessRun:
    """What one fresh process of a subject measured. Samples of all subjects at the same place had the same input.

    Attributes:
        start: From nothing to the first vector.
        latency_ms: Times of single texts, tokenizing included.
        warmup_ms: Times of the calls that do not count: the first ones, and those that settle each turn.
        cpu_s: Processor time of the counted and uncounted single texts, of all the process's threads.
        parts_ms: Some of the texts again: times of "encode" and of the parts of that done bare: "tokenize", and "run"
            of what that gives; empty for a subject that hides them.
        batches_ms: Times of full batches.
        sweep_ms: For each length of the sweep its times.
        sweep_tokens: For each length the tokens that this subject's own tokenizer sees, before any cut; empty if it
            does not tell.
        overhead_ms: Median time that the bench takes for a call of nothing.
        resident_bytes: Resident memory after all that; None where the system does not tell.
        peak_bytes: The most resident memory of the process, likewise.
    """

    start: Start
    latency_ms: tuple[float, ...]
    warmup_ms: tuple[float, ...]
    cpu_s: float
    parts_ms: dict[str, tuple[float, ...]]
    batches_ms: tuple[float, ...]
    sweep_ms: tuple[tuple[float, ...], ...]
    sweep_tokens: tuple[int, ...]
    overhead_ms: float
    resident_bytes: int | None
    peak_bytes: int | None


@dataclass(frozen=True)
class SubjectResult:
    """What one subject costs.

    Attributes:
        subject: What it is.
        facts: What it tells of itself.
        size: Its files.
        discarded_start: The start before those that count, which may have found nothing in the system's file cache.
        processes: What each of its processes measured.
        energy: Energy of single texts.
        quality: Scores of 0 to 100 beside the costs, by task.
    """

    subject: Subject
    facts: ModelInfo
    size: Size
    discarded_start: Start
    processes: tuple[ProcessRun, ...]
    energy: Energy
    quality: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The subject's name."""
        return self.subject.name

    @property
    def latency_ms(self) -> tuple[float, ...]:
        """Times of all counted single texts."""
        return tuple(chain.from_iterable(run.latency_ms for run in self.processes))

    @property
    def latency(self) -> Spread:
        """Median and quartiles of the time of one text, in milliseconds."""
        return spread(self.latency_ms)

    @property
    def p99_ms(self) -> float:
        """The time that 99 of 100 texts stay below."""
        return quantile(self.latency_ms, 0.99)

    @property
    def batches_ms(self) -> tuple[float, ...]:
        """Times of all counted batches; empty if throughput was not measured."""
        return tuple(chain.from_iterable(run.batches_ms for run in self.processes))

    @property
    def cpu_ms(self) -> float:
        """Processor time a text, in milliseconds: what all threads of the process used. It is no energy."""
        calls = sum(len(run.latency_ms) + len(run.warmup_ms) for run in self.processes)
        return sum(run.cpu_s for run in self.processes) / calls * 1e3

    @property
    def start_ms(self) -> Spread:
        """Median and quartiles of process start to first vector, in milliseconds."""
        return spread([run.start.total_ms for run in self.processes])

    def start_stage_ms(self, stage: str) -> float:
        """Give the median of a stage of the start: "interpreter", "import", "load" or "first_call"."""
        return float(statistics.median(getattr(run.start, f"{stage}_ms") for run in self.processes))

    def part_ms(self, part: str) -> float | None:
        """Give the median of "encode", "tokenize" or "run"; None for a subject that hides its parts."""
        times = [time for run in self.processes for time in run.parts_ms.get(part, ())]
        return float(statistics.median(times)) if times else None

    def sweep_at(self, position: int) -> Spread:
        """Give median and quartiles, in milliseconds, of the sweep's length at a position."""
        return spread([time for run in self.processes for time in run.sweep_ms[position]])

    @property
    def resident_bytes(self) -> float | None:
        """Median resident memory after all texts; None where the system does not tell."""
        return _median_or_none([run.resident_bytes for run in self.processes])

    @property
    def peak_bytes(self) -> float | None:
        """Median of the most resident memory of a process; None likewise."""
        return _median_or_none([run.peak_bytes for run in self.processes])

    @property
    def overhead_share(self) -> float:
        """The bench's own time for a call as a share of the median call."""
        return statistics.median(run.overhead_ms for run in self.processes) / self.latency.median


@dataclass(frozen=True)
class BenchReport:
    """One run of the bench.

    Attributes:
        created_utc: When, ISO 8601.
        machine: Where.
        load: What else went on there.
        settings: How.
        baseline: Name of the subject that the others are compared with.
        subjects: What was found.
    """

    created_utc: str
    machine: Machine
    load: Load
    settings: Settings
    baseline: str
    subjects: tuple[SubjectResult, ...]

    def __getitem__(self, name: str) -> SubjectResult:
        for subject in self.subjects:
            if subject.name == name:
                return subject
        raise InputError(f"no subject {name!r} in the report; expected one of: {', '.join(each.name for each in self)}")

    def __iter__(self) -> Iterator[SubjectResult]:
        return iter(self.subjects)

    def latency_ratio(self, name: str) -> Estimate:
        """Return a subject's median latency as a multiple of the baseline's, with its 95 % interval over processes.

        Args:
            name: The subject's name.

        Raises:
            InputError: If the report has no such subject.
        """
        return clustered_ratio(self._latencies(name), self._latencies(self.baseline))

    def verdict(self, name: str) -> Verdict:
        """Tell whether a subject's latency and the baseline's can be told apart."""
        return verdict(self._latencies(name), self._latencies(self.baseline))

    def sentences_per_s(self, name: str) -> float | None:
        """Give the texts a second in full batches, from the median batch; None if not measured."""
        times = self[name].batches_ms
        return self.settings.batch_size / statistics.median(times) * 1e3 if times else None

    @property
    def tasks(self) -> list[str]:
        """The tasks that a subject has a score on."""
        return list(dict.fromkeys(task for subject in self.subjects for task in subject.quality))

    def mean_quality(self, name: str) -> float | None:
        """Give a subject's mean score over all tasks; None if it lacks one of them, or there are none."""
        quality = self[name].quality
        if not self.tasks or any(task not in quality for task in self.tasks):
            return None
        return statistics.fmean(quality[task] for task in self.tasks)

    def quality_percent(self, name: str) -> float | None:
        """Give a subject's mean score as percent of the baseline's; None if either is missing."""
        score, baseline = self.mean_quality(name), self.mean_quality(self.baseline)
        return None if score is None or not baseline else 100 * score / baseline

    def with_quality(self, task: str, scores: Mapping[str, float]) -> "BenchReport":
        """Put a score beside the costs.

        Args:
            task: What was scored, with its unit unless that is 0 to 100.
            scores: The score by subject name; a subject without one shows a dash.

        Returns:
            A report with that column.
        """
        subjects = (
            replace(subject, quality=subject.quality | {task: scores[subject.name]})
            if subject.name in scores
            else subject
            for subject in self.subjects
        )
        return replace(self, subjects=tuple(subjects))

    def _latencies(self, name: str) -> list[tuple[float, ...]]:
        return [run.latency_ms for run in self[name].processes]


def _median_or_none(values: list[int | None]) -> float | None:
    known = [math.nan if value is None else value for value in values]
    middle = statistics.median(known) if None not in values else math.nan
    return None if math.isnan(middle) else float(middle)
