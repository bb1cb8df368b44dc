"""What the runtime's benchmark found: raw samples, the figures derived from them, the targets, and JSON."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from edgeembed_runtime.errors import InputError

from edgeembed_bench.machine import Machine
from edgeembed_bench.schedule import Samples
from edgeembed_bench.stats import Estimate, Spread, mean_estimate, ratio_estimate, spread
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import Start

# 1: latency and parts of one process. 2: of several, their samples apart.
SCHEMA_VERSION = 2

MOST_OVERHEAD_US = 15.0
MOST_TIMES_FLOOR = 1.5
_BUSY = 0.5


@dataclass(frozen=True)
class RuntimeSettings:
    """How a run was made.

    Attributes:
        rounds: Turns of each subject, shared out among its processes.
        processes: Fresh processes of each subject in which texts are timed.
        block: Counted texts a turn; one before them does not count.
        warmup: Texts in each process before the first turn.
        starts: Counted fresh processes of each subject; one before them does not count.
        passes: How often the texts of all turns are split into their parts.
        seed: Decides the order of turns.
        texts_from: Where the texts come from.
        texts: Number of different texts.
        mean_characters: Their mean length.
        core: The core that everything ran on; None where the system cannot keep a process on one.
        load_average: Processes that wanted to run in the minute before; None where the system does not tell.
    """

    rounds: int
    processes: int
    block: int
    warmup: int
    starts: int
    passes: int
    seed: int
    texts_from: str
    texts: int
    mean_characters: float
    core: int | None = None
    load_average: float | None = None

    @property
    def is_busy(self) -> bool:
        """Whether others were at work on the machine."""
        return self.load_average is not None and self.load_average > _BUSY


@dataclass(frozen=True)
class SubjectRun:
    """What one subject costs.

    Attributes:
        subject: What it is.
        facts: Its vector's dimension, the version of Python and those of its packages.
        starts: Fresh processes, from nothing to the first vector.
        discarded_start: The one before, which may have found nothing in the system's file cache.
        latency: For each process the times of single texts, tokenizing included; empty for what encodes nothing.
        parts_us: Of bundles, for each process, text by text: microseconds of "encode"; of "bare", which is the
            tokenizer, arrays of its tokens and the session (or matrix work) and nothing else; and of the first and
            last of these: "tokenize", "run". Empty for other subjects.
        resident_bytes: Resident memory of each process after all its texts; empty if it was not measured.
    """

    subject: Subject
    facts: dict[str, Any]
    starts: tuple[Start, ...]
    discarded_start: Start
    latency: tuple[Samples, ...]
    parts_us: tuple[Mapping[str, tuple[float, ...]], ...]
    resident_bytes: tuple[int, ...]

    @property
    def name(self) -> str:
        """The subject's name."""
        return self.subject.name

    @property
    def start_ms(self) -> list[float]:
        """Process start to first vector, of each start."""
        return [start.total_ms for start in self.starts]

    def median_start(self, field: str) -> float | None:
        """Give the median over the starts of a field of `Start`; None if it was not measured."""
        values = [getattr(start, field) for start in self.starts]
        return None if None in values else float(statistics.median(values))

    @property
    def latency_ms(self) -> Spread | None:
        """Median and quartiles of the time of one text, in milliseconds; None for what encodes nothing."""
        times_ms = list(chain.from_iterable(samples.timed_ms for samples in self.latency))
        return spread(times_ms) if times_ms else None

    @property
    def median_latencies_ms(self) -> list[float]:
        """The median time of one text in each process, in milliseconds."""
        return [statistics.median(samples.timed_ms) for samples in self.latency]

    @property
    def overhead_us(self) -> Estimate | None:
        """What encoding adds to the bare calls, in microseconds; None if not split.

        It is the mean over processes of the median difference, text by text, and its interval.
        """
        if not self.parts_us:
            return None
        return mean_estimate([_median_difference(parts["encode"], parts["bare"]) for parts in self.parts_us])

    def part_us(self, part: str) -> float | None:
        """Return the median over all processes of a part, in microseconds; None if not split."""
        times_us = [time for parts in self.parts_us for time in parts[part]]
        return statistics.median(times_us) if times_us else None

    @property
    def median_resident_bytes(self) -> float | None:
        """Median resident memory after all texts; None if it was not measured."""
        return statistics.median(self.resident_bytes) if self.resident_bytes else None


@dataclass(frozen=True)
class Target:
    """A limit that the runtime keeps, beside what was measured.

    Attributes:
        what: What is measured.
        measured: The figure; None if it was not measured.
        most: What it may be at most.
    """

    what: str
    measured: Estimate | None
    most: float

    @property
    def is_met(self) -> bool | None:
        """Whether the figure is within the limit; None if it was not measured, or not well enough to tell."""
        if self.measured is None or self.measured.low is None or self.measured.high is None:
            return None
        if self.measured.low <= self.most < self.measured.high:
            return None
        return self.measured.high <= self.most


@dataclass(frozen=True)
class RuntimeReport:
    """One run of the runtime's benchmark.

    Attributes:
        created_utc: When, ISO 8601.
        machine: Where.
        settings: How.
        baseline: Name of the subject whose latency the others are compared with.
        floor: Name of the subject that does nothing but import, with which starts and memory are compared.
        held_to_targets: Names of the subjects that the targets are for.
        runs: What was found.
        left_out: Why a subject is absent, by its name.
    """

    created_utc: str
    machine: Machine
    settings: RuntimeSettings
    baseline: str
    floor: str
    held_to_targets: tuple[str, ...]
    runs: tuple[SubjectRun, ...]
    left_out: dict[str, str]

    def __getitem__(self, name: str) -> SubjectRun:
        for run in self.runs:
            if run.name == name:
                return run
        names = ", ".join(run.name for run in self.runs)
        raise InputError(f"no subject {name!r} in the report; expected one of: {names}")

    def latency_ratio(self, name: str) -> Estimate | None:
        """Return a subject's median latency as a multiple of the baseline's; None for what encodes nothing."""
        medians_ms, baseline_ms = (self[each].median_latencies_ms for each in (name, self.baseline))
        return ratio_estimate(medians_ms, baseline_ms) if medians_ms and baseline_ms else None

    def start_ratio(self, name: str) -> Estimate:
        """Return a subject's time to the first vector as a multiple of the floor's."""
        return ratio_estimate(self[name].start_ms, self[self.floor].start_ms)

    def memory_ratio(self, name: str) -> Estimate | None:
        """Return a subject's memory after the first vector as a multiple of the floor's; None if not measured."""
        sizes, least = ([start.resident_bytes or 0 for start in self[each].starts] for each in (name, self.floor))
        return ratio_estimate(sizes, least) if all(sizes) and all(least) else None

    def targets(self) -> list[Target]:
        """Return the limits that the runtime is held to, each with what was measured."""
        return [
            target
            for name in self.held_to_targets
            for target in (
                Target(f"{name}: overhead of a call, us", self[name].overhead_us, MOST_OVERHEAD_US),
                Target(f"{name}: cold start, x floor", self.start_ratio(name), MOST_TIMES_FLOOR),
                Target(f"{name}: resident memory, x floor", self.memory_ratio(name), MOST_TIMES_FLOOR),
            )
        ]

    def as_dict(self) -> dict[str, Any]:
        """Give everything, ready for JSON."""
        targets = [asdict(target) | {"is_met": target.is_met} for target in self.targets()]
        runs = [asdict(run) | {"derived": self._derived(run)} for run in self.runs]
        return {"schema_version": SCHEMA_VERSION, "kind": "runtime"} | asdict(self) | {"runs": runs, "targets": targets}

    def to_json(self) -> str:
        """Give everything as JSON text."""
        return json.dumps(self.as_dict(), ensure_ascii=False, allow_nan=False)

    def _derived(self, run: SubjectRun) -> dict[str, Any]:
        figures = {
            "latency_ms": run.latency_ms,
            "latency_ratio": self.latency_ratio(run.name),
            "overhead_us": run.overhead_us,
            "start_ms": spread(run.start_ms),
            "start_ratio": self.start_ratio(run.name),
            "memory_ratio": self.memory_ratio(run.name),
        }
        return {name: None if figure is None else asdict(figure) for name, figure in figures.items()}


def _median_difference(samples: Sequence[float], baseline: Sequence[float]) -> float:
    return statistics.median(sample - other for sample, other in zip(samples, baseline, strict=True))
