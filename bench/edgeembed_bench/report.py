"""What a bench run found: raw samples, the figures derived from them, and JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from edgeembed_bench.interleaving import Samples
from edgeembed_bench.machine import Machine

SCHEMA_VERSION = 1  # 1: the first


@dataclass(frozen=True)
class Settings:
    """How a run was made.

    Attributes:
        runs: Counted batch-1 calls a subject.
        warmup: Calls a subject before those.
        block: Calls a turn.
        batches: Counted calls of a full batch a subject.
        batch_size: Texts in such a batch.
        threads: Threads each subject may use.
        seed: Decides the order of turns.
        texts: Number of different texts.
        mean_characters: Their mean length.
    """

    runs: int
    warmup: int
    block: int
    batches: int
    batch_size: int
    threads: int
    seed: int
    texts: int
    mean_characters: float


@dataclass(frozen=True)
class Energy:
    """Energy of batch-1 inference.

    Attributes:
        mj_per_inference: Millijoules an inference, the machine's idle power included; None if not measured.
        inferences: Inferences in the window; 0 if there was none.
        window_s: The window's length in seconds; None if there was none.
        source: The meter; None if there was none.
        reason: Why it was not measured; None if it was.
    """

    mj_per_inference: float | None
    inferences: int
    window_s: float | None
    source: str | None
    reason: str | None


@dataclass(frozen=True)
class SubjectResult:
    """What one subject costs.

    Attributes:
        name: The subject's name.
        kind: What ran it.
        size_bytes: Bytes on disk of what running it needs.
        size_of: Which files those are.
        parameters: Number of weights; None where nobody counted.
        latency: Times of single texts, tokenizing included.
        batches: Times of full batches.
        batch_size: Texts in such a batch.
        energy: Energy of single texts.
        quality: Scores to show beside the costs, by column title.
    """

    name: str
    kind: str
    size_bytes: int
    size_of: str
    parameters: int | None
    latency: Samples
    batches: Samples
    batch_size: int
    energy: Energy
    quality: dict[str, float] = field(default_factory=dict)

    @property
    def median_ms(self) -> float:
        """Median time of one text in milliseconds."""
        return self.latency.quantile_ms(0.5)

    @property
    def sentences_per_s(self) -> float:
        """Texts a second at full batches, from the median batch."""
        return self.batch_size / self.batches.quantile_ms(0.5) * 1e3

    def as_dict(self) -> dict[str, Any]:
        """Give the figures and the raw samples, ready for JSON."""
        derived = {
            "median_ms": self.median_ms,
            "q1_ms": self.latency.quantile_ms(0.25),
            "q3_ms": self.latency.quantile_ms(0.75),
            "p99_ms": self.latency.quantile_ms(0.99),
            "sentences_per_s": self.sentences_per_s,
        }
        return asdict(self) | derived


@dataclass(frozen=True)
class BenchReport:
    """One run of the bench.

    Attributes:
        created_utc: When, ISO 8601.
        machine: Where.
        settings: How.
        baseline: Name of the subject that the others are compared with.
        subjects: What was found.
    """

    created_utc: str
    machine: Machine
    settings: Settings
    baseline: str
    subjects: tuple[SubjectResult, ...]

    def __getitem__(self, name: str) -> SubjectResult:
        return next(subject for subject in self.subjects if subject.name == name)

    def latency_ratio(self, name: str) -> float:
        """Give a subject's median latency as a multiple of the baseline's, measured in the same run."""
        return self[name].median_ms / self[self.baseline].median_ms

    def with_quality(self, title: str, scores: Mapping[str, float]) -> "BenchReport":
        """Put a score beside the costs.

        Args:
            title: The column's title, unit included.
            scores: The score by subject name; a subject without one shows a dash.

        Returns:
            A report with that column.
        """
        subjects = (
            replace(subject, quality=subject.quality | {title: scores[subject.name]})
            if subject.name in scores
            else subject
            for subject in self.subjects
        )
        return replace(self, subjects=tuple(subjects))

    def as_dict(self) -> dict[str, Any]:
        """Give everything, ready for JSON."""
        ratios = {subject.name: self.latency_ratio(subject.name) for subject in self.subjects}
        subjects = [subject.as_dict() | {"latency_ratio": ratios[subject.name]} for subject in self.subjects]
        return {"schema_version": SCHEMA_VERSION} | asdict(self) | {"subjects": subjects}

    def to_json(self) -> str:
        """Give everything as JSON text."""
        return json.dumps(self.as_dict(), ensure_ascii=False, allow_nan=False)
