"""What the runtime's benchmark found: raw samples, the figures derived from them, the targets, and JSON."""

import json
import statistics
from dataclasses import asdict, dataclass
from typing import Any

from edgeembed_bench.estimates import Estimate, median_difference, median_ratio, spread
from edgeembed_bench.interleaving import Samples
from edgeembed_bench.machine import Machine
from edgeembed_bench.processes import Start
from edgeembed_bench.subjects import Subject

SCHEMA_VERSION = 1  # 1: the first

MOST_OVERHEAD_US = 15.0
MOST_TIMES_FLOOR = 1.5
_BUSY = 0.5


@dataclass(frozen=True)
class RuntimeSettings:
    """How a run was made.

    Attributes:
        rounds: Turns of each subject.
        block: Counted texts a turn; one before them does not count.
        warmup: Texts before the first turn.
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
        latency: Times of single texts, tokenizing included; None for what encodes nothing.
        parts_us: Of bundles, text by text: microseconds of "encode"; of "bare", which is the tokenizer, arrays of its
            tokens and the session (or matrix work) and nothing else; and of the first and last of these: "tokenize",
            "run".
        resident_bytes: Resident memory after all texts; None if it was not measured.
    """

    subject: Subject
    facts: dict[str, Any]
    starts: tuple[Start, ...]
    discarded_start: Start
    latency: Samples | None
    parts_us: dict[str, tuple[float, ...]] | None
    resident_bytes: int | None

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
    def overhead_us(self) -> Estimate | None:
        """What encoding adds to the bare calls; None if not split."""
        if self.parts_us is None:
            return None
        return median_difference(self.parts_us["encode"], self.parts_us["bare"])


@dataclass(frozen=True)
class Target:
    """What issue 3 demands, beside what was measured.

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
        """Whether the figure is within the limit; None if it was not measured, or too coarsely to tell."""
        if self.measured is None or self.measured.low <= self.most < self.measured.high:
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
        return next(run for run in self.runs if run.name == name)

    def latency_ratio(self, name: str) -> Estimate | None:
        """Give a subject's median latency as a multiple of the baseline's; None for what encodes nothing."""
        latency, baseline = self[name].latency, self[self.baseline].latency
        if latency is None or baseline is None:
            return None
        return median_ratio(latency.timed_ms, baseline.timed_ms)

    def start_ratio(self, name: str) -> Estimate:
        """Give a subject's median time to the first vector as a multiple of the floor's."""
        return median_ratio(self[name].start_ms, self[self.floor].start_ms)

    def memory_ratio(self, name: str) -> Estimate | None:
        """Give a subject's median memory after the first vector as a multiple of the floor's; None if not measured."""
        sizes, least = ([start.resident_bytes or 0 for start in self[each].starts] for each in (name, self.floor))
        return median_ratio(sizes, least) if all(sizes) and all(least) else None

    def targets(self) -> list[Target]:
        """Give what is demanded of the runtime, and whether it is met."""
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
            "latency_ms": None if run.latency is None else spread(run.latency.timed_ms),
            "latency_ratio": self.latency_ratio(run.name),
            "overhead_us": run.overhead_us,
            "start_ms": spread(run.start_ms),
            "start_ratio": self.start_ratio(run.name),
            "memory_ratio": self.memory_ratio(run.name),
        }
        return {name: None if figure is None else asdict(figure) for name, figure in figures.items()}
