"""Limits on the cost and quality of models, and the comparison of measurements with them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from edgeembed_runtime.errors import InputError

from edgeembed_bench.stats import Interval
from edgeembed_bench.subjects import Subject


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

    def check_sizes(self, subjects: Sequence[Subject]) -> None:
        """Raise InputError if the size is limited but the size of a subject cannot be known.

        Called before anything is measured.

        Args:
            subjects: The subjects that have to keep the limits.

        Raises:
            InputError: If `max_mb` is set and a subject is a function or the floor, which name no files.
        """
        unknown = [subject.name for subject in subjects if subject.adapter in {"function", "nothing"}]
        if self.max_mb is not None and unknown:
            raise not_measured("size (MB)", unknown[0], "it names no files")


@dataclass(frozen=True)
class LimitCheck:
    """One limit and the measured value of one subject.

    Attributes:
        subject: Name of the subject.
        quantity: What is limited, with its unit, such as "cold start (x floor)".
        measured: The measured value; without bounds if it is exact or if too few processes were measured.
        limit: The limit.
        is_minimum: Whether the limit is the lowest value allowed rather than the highest.
        is_exact: Whether the measurement has no sampling error, such as a file size.
    """

    subject: str
    quantity: str
    measured: Interval
    limit: float
    is_minimum: bool = False
    is_exact: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether the value, as measured, keeps the limit."""
        value = self.measured.value
        return value >= self.limit if self.is_minimum else value <= self.limit

    @property
    def is_certain(self) -> bool:
        """Whether the whole 95 % interval lies on one side of the limit; False if there is no interval."""
        if self.is_exact:
            return True
        low, high = self.measured.low, self.measured.high
        return low is not None and high is not None and (high <= self.limit or low > self.limit)

    @property
    def is_exceeded(self) -> bool:
        """Whether the whole 95 % interval lies beyond the limit; if there is no interval, whether the value does."""
        has_interval = self.measured.low is not None and self.measured.high is not None
        return not self.is_kept and (self.is_certain or not has_interval)

    @property
    def failure(self) -> str | None:
        """One line about a limit that is exceeded; None if it is kept, or unclear because the interval contains it."""
        if not self.is_exceeded:
            return None
        comparison = "less" if self.is_minimum else "more"
        return f"{self.subject}: {self.quantity} {self._value()}, {comparison} than {self.limit:g}"

    def _value(self) -> str:
        value = f"{self.measured.value:.3f}"
        if self.is_exact:
            return value
        if self.measured.low is None or self.measured.high is None:
            return f"{value} (no 95 % interval: {self.measured.reason})"
        return f"{value} (95 %: {self.measured.low:.3f} to {self.measured.high:.3f})"


def not_measured(quantity: str, name: str, reason: str) -> InputError:
    """Return the InputError for a limit on a quantity that was not measured.

    Args:
        quantity: The quantity, such as "size (MB)".
        name: Name of the subject.
        reason: Why there is no measurement, and what to do.
    """
    return InputError(f"the limit on {quantity} cannot be checked for {name}: not measured; {reason}")
