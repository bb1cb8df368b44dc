"""Limits on the cost and quality of models, and the comparison of measurements with them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from edgeembed_runtime.errors import InputError

from edgeembed_bench.sizes import unknown_size_reason
from edgeembed_bench.stats import Interval
from edgeembed_bench.subjects import Subject

LimitResult = Literal["kept", "exceeded", "unclear", "not measured"]

SIZE = "size (MB)"
CALL_OVERHEAD = "overhead of a call (us)"
NO_PARTS = "its tokenization and model cannot be timed apart"
# Adapters of libraries whose tokenizer or model cannot be called by itself.
_WITHOUT_PARTS = {"function", "fastembed", "model2vec", "nothing"}


@dataclass(frozen=True)
class Budget:
    """Limits on the cost and quality of a model; a limit that is None is not checked.

    Attributes:
        max_latency_ratio: Maximum latency ratio to the baseline.
        max_mb: Maximum total size of the files that the model needs, in 10^6 bytes.
        min_quality: Minimum mean score, in percent of the baseline's.
        max_start_ratio: Maximum cold start, as a multiple of the floor's.
        max_memory_ratio: Maximum resident memory after the first embedding, as a multiple of the floor's.
        max_overhead_us: Maximum time that encoding one text adds to tokenization and model, in microseconds.
    """

    max_latency_ratio: float | None = None
    max_mb: float | None = None
    min_quality: float | None = None
    max_start_ratio: float | None = None
    max_memory_ratio: float | None = None
    max_overhead_us: float | None = None

    def __post_init__(self) -> None:
        """Raise InputError if a limit is negative or not finite: every comparison with NaN is false."""
        for name, limit in asdict(self).items():
            if limit is not None and not (math.isfinite(limit) and limit >= 0):
                raise InputError(f"{name}: {limit} given; expected a number of at least 0")

    def check_subjects(self, subjects: Sequence[Subject]) -> None:
        """Raise InputError if a quantity is limited that cannot be measured for a subject.

        Called before anything is measured.

        Args:
            subjects: The subjects that have to keep the limits.

        Raises:
            InputError: If `max_mb` is set and a subject names no files, such as a function or a model's name in
                fastembed; or if `max_overhead_us` is set and a subject's tokenizer or model cannot be called by itself.
        """
        for subject in subjects:
            size_reason = unknown_size_reason(subject)
            if self.max_mb is not None and size_reason is not None:
                raise _not_measured(SIZE, subject.name, size_reason)
            if self.max_overhead_us is not None and subject.adapter in _WITHOUT_PARTS:
                raise _not_measured(CALL_OVERHEAD, subject.name, NO_PARTS)


@dataclass(frozen=True)
class LimitCheck:
    """One limit and the measured value of one subject.

    Attributes:
        subject: Name of the subject.
        quantity: What is limited, with its unit, such as "cold start (x floor)".
        measured: The measured value, without bounds if it is exact or if too few processes were measured; None if
            nothing was measured.
        limit: The limit.
        is_minimum: Whether the limit is the lowest value allowed rather than the highest.
        is_exact: Whether the measurement has no sampling error, such as a file size.
        reason: Why nothing was measured, one line; None if something was.
    """

    subject: str
    quantity: str
    measured: Interval | None
    limit: float
    is_minimum: bool = False
    is_exact: bool = False
    reason: str | None = None

    @property
    def result(self) -> LimitResult:
        """Whether the limit is kept or exceeded, or why it is neither; "unclear" does not fail a run."""
        if self.measured is None:
            return "not measured"
        if self.is_exceeded:
            return "exceeded"
        return "kept" if self.is_certain else "unclear"

    @property
    def is_kept(self) -> bool:
        """Whether the value, as measured, keeps the limit; False if it was not measured."""
        if self.measured is None:
            return False
        value = self.measured.value
        return value >= self.limit if self.is_minimum else value <= self.limit

    @property
    def is_certain(self) -> bool:
        """Whether the whole 95 % interval lies on one side of the limit; False if there is no interval."""
        if self.measured is None:
            return False
        if self.is_exact:
            return True
        low, high = self.measured.low, self.measured.high
        return low is not None and high is not None and (high <= self.limit or low > self.limit)

    @property
    def is_exceeded(self) -> bool:
        """Whether the whole 95 % interval lies beyond the limit; if there is no interval, whether the value does."""
        if self.measured is None:
            return False
        has_interval = self.measured.low is not None and self.measured.high is not None
        return not self.is_kept and (self.is_certain or not has_interval)

    @property
    def failure(self) -> str | None:
        """One line about a limit that fails a run: it is exceeded, or its quantity was not measured; else None.

        A limit that is unclear, because the interval contains it, does not fail a run.
        """
        if self.measured is None:
            return f"{self.subject}: {self.quantity} not measured, limit {self.limit:g}: {self.reason}"
        if not self.is_exceeded:
            return None
        comparison = "less" if self.is_minimum else "more"
        return f"{self.subject}: {self.quantity} {self._value(self.measured)}, {comparison} than {self.limit:g}"

    def _value(self, measured: Interval) -> str:
        value = f"{measured.value:.3f}"
        if self.is_exact:
            return value
        if measured.low is None or measured.high is None:
            return f"{value} (no 95 % interval: {measured.reason})"
        return f"{value} (95 %: {measured.low:.3f} to {measured.high:.3f})"


def _not_measured(quantity: str, name: str, reason: str) -> InputError:
    return InputError(f"the limit on {quantity} cannot be checked for {name}: not measured; {reason}")
