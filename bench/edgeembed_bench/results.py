"""Results of a subject: the raw samples of its processes, and statistics derived from them."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from edgeembed_bench.energy import Energy
from edgeembed_bench.model_info import ModelInfo
from edgeembed_bench.sizes import Size
from edgeembed_bench.stats import Interval, Quartiles, mean_interval
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import Start

START_STAGES = ("interpreter", "import", "load", "first_call")
PARTS = ("encode", "bare", "tokenize", "run")


@dataclass(frozen=True)
class ProcessRun:
    """Samples of one fresh process of a subject; at each position, all subjects of a round had the same input.

    Attributes:
        start: Cold start, from the request for a process to the first embedding.
        latency_ms: Time of each single text, tokenization included.
        warmup_ms: Time of each warm-up call, at the start of the process and of each turn.
        cpu_s: CPU time of the timed and warm-up calls with single texts, summed over threads.
        parts_ms: Times of single texts by part: "encode", the whole call; "tokenize"; "run", the model on token ids;
            "bare", tokenization and model without the encoder around them. Empty if the subject's parts cannot be
            called separately.
        batches_ms: Times of full batches.
        sweep_ms: Times for each length of the length sweep.
        sweep_tokens: Tokens at each length by this subject's own tokenizer, before truncation; empty if unknown.
        timer_ms: Median measured time of an empty call, the overhead of the measurement.
        resident_bytes: Resident memory after all single texts; None where the system does not report it.
        peak_bytes: Peak resident memory until the end of all single texts; None where the system does not report it.
    """

    start: Start
    latency_ms: tuple[float, ...]
    warmup_ms: tuple[float, ...]
    cpu_s: float
    parts_ms: dict[str, tuple[float, ...]]
    batches_ms: tuple[float, ...]
    sweep_ms: tuple[tuple[float, ...], ...]
    sweep_tokens: tuple[int, ...]
    timer_ms: float
    resident_bytes: int | None
    peak_bytes: int | None


@dataclass(frozen=True)
class FloorResult:
    """Cold starts of processes that only import packages: the floor of cold start and memory.

    Attributes:
        subject: The modules that it imports.
        discarded_start: The first start, which may have read files that were not in the page cache.
        starts: One cold start per round of the benchmark.
    """

    subject: Subject
    discarded_start: Start
    starts: tuple[Start, ...]

    @property
    def start_ms(self) -> Quartiles:
        """Quartiles of the time from process start to the end of the imports, in milliseconds."""
        return Quartiles.of([start.total_ms for start in self.starts])

    def start_stage_ms(self, stage: str) -> float:
        """Return the median duration of one of `START_STAGES`, in milliseconds."""
        return _median_stage(self.starts, stage)

    @property
    def start_resident_bytes(self) -> float | None:
        """Median resident memory after the imports; None where the system does not report it."""
        return _median_or_none(start.resident_bytes for start in self.starts)

    @property
    def start_peak_bytes(self) -> float | None:
        """Median peak resident memory until the end of the imports; None where the system does not report it."""
        return _median_or_none(start.peak_bytes for start in self.starts)


@dataclass(frozen=True)
class SubjectResult:
    """Results of one subject.

    Attributes:
        subject: The subject.
        info: Properties of its model and packages.
        size: Sizes of its files.
        discarded_start: The first start, which may have read files that were not in the page cache.
        processes: Samples of each of its processes.
        energy: Energy of single texts.
        quality: Scores between 0 and 100, by task.
    """

    subject: Subject
    info: ModelInfo
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
        """Times of all single texts."""
        return tuple(chain.from_iterable(run.latency_ms for run in self.processes))

    @property
    def latency(self) -> Quartiles:
        """Quartiles of the latency of one text, in milliseconds."""
        return Quartiles.of(self.latency_ms)

    @property
    def p99_ms(self) -> float:
        """99th percentile of the latency of one text, in milliseconds."""
        return float(np.quantile(self.latency_ms, 0.99))

    @property
    def batches_ms(self) -> tuple[float, ...]:
        """Times of all batches; empty if throughput was not measured."""
        return tuple(chain.from_iterable(run.batches_ms for run in self.processes))

    @property
    def cpu_ms(self) -> float:
        """CPU time per text in milliseconds, summed over threads; not a measure of energy."""
        calls = sum(len(run.latency_ms) + len(run.warmup_ms) for run in self.processes)
        return sum(run.cpu_s for run in self.processes) / calls * 1e3

    @property
    def starts(self) -> tuple[Start, ...]:
        """The cold start of each process."""
        return tuple(run.start for run in self.processes)

    @property
    def start_ms(self) -> Quartiles:
        """Quartiles of the time from process start to the first embedding, in milliseconds."""
        return Quartiles.of([start.total_ms for start in self.starts])

    def start_stage_ms(self, stage: str) -> float:
        """Return the median duration of one of `START_STAGES`, in milliseconds."""
        return _median_stage(self.starts, stage)

    @property
    def start_resident_bytes(self) -> float | None:
        """Median resident memory after the first embedding; None where the system does not report it."""
        return _median_or_none(start.resident_bytes for start in self.starts)

    @property
    def start_peak_bytes(self) -> float | None:
        """Median peak resident memory until the first embedding; None where the system does not report it."""
        return _median_or_none(start.peak_bytes for start in self.starts)

    def part_ms(self, part: str) -> float | None:
        """Return the median duration of one of `PARTS`, in milliseconds; None if it was not measured."""
        times = [time for run in self.processes for time in run.parts_ms.get(part, ())]
        return float(statistics.median(times)) if times else None

    @property
    def call_overhead_us(self) -> Interval | None:
        """Time in microseconds that the encoder adds to tokenization and model for one text; None if not measured.

        It is the mean over processes of the median over texts of "encode" minus "bare".
        """
        parts = [run.parts_ms for run in self.processes]
        if not all(each.get("encode") and each.get("bare") for each in parts):
            return None
        return mean_interval([1e3 * _median_difference(each["encode"], each["bare"]) for each in parts])

    def sweep_at(self, position: int) -> Quartiles:
        """Return the quartiles of the latency at a length of the length sweep, in milliseconds."""
        return Quartiles.of([time for run in self.processes for time in run.sweep_ms[position]])

    @property
    def resident_bytes(self) -> float | None:
        """Median resident memory after all single texts; None where the system does not report it."""
        return _median_or_none(run.resident_bytes for run in self.processes)

    @property
    def peak_bytes(self) -> float | None:
        """Median peak resident memory of a process; None where the system does not report it."""
        return _median_or_none(run.peak_bytes for run in self.processes)

    @property
    def timer_share(self) -> float:
        """The benchmark's own overhead per call as a fraction of the median latency."""
        return statistics.median(run.timer_ms for run in self.processes) / self.latency.median


def _median_stage(starts: Sequence[Start], stage: str) -> float:
    return float(statistics.median(getattr(start, f"{stage}_ms") for start in starts))


def _median_difference(times: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(time - other for time, other in zip(times, others, strict=True))


def _median_or_none(values: Iterable[int | None]) -> float | None:
    known = list(values)
    measured = [value for value in known if value is not None]
    return float(statistics.median(measured)) if measured and len(measured) == len(known) else None
