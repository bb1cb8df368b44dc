"""What can be said of times that scatter: quartiles, and ratios with an interval of confidence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

CONFIDENCE = 0.95
_RESAMPLES = 2000


@dataclass(frozen=True)
class Spread:
    """A median and its quartiles, in the unit of the samples."""

    q1: float
    median: float
    q3: float


@dataclass(frozen=True)
class Estimate:
    """A figure and between what it lies with 95 % confidence.

    Attributes:
        value: The figure.
        low: The lower end; the figure itself where there are too few samples to tell.
        high: The upper end, likewise.
    """

    value: float
    low: float
    high: float


def spread(samples: Sequence[float]) -> Spread:
    """Give the median and the quartiles of some samples."""
    return Spread(*(float(quantile) for quantile in np.quantile(samples, (0.25, 0.5, 0.75))))


def quantile(samples: Sequence[float], share: float) -> float:
    """Give what a share (0 to 1) of some samples stay below."""
    return float(np.quantile(samples, share))


def median_ratio(samples: Sequence[float], baseline: Sequence[float], seed: int = 0) -> Estimate:
    """Give the median of some samples as a multiple of the baseline's.

    Args:
        samples: The samples.
        baseline: As many, each taken beside the sample at the same place (the same text, the same round), so that
            what hit both does not widen the interval.
        seed: Decides the resamples.
    """

    def ratio(top: npt.NDArray[Any], bottom: npt.NDArray[Any], axis: int = -1) -> Any:
        return np.median(top, axis=axis) / np.median(bottom, axis=axis)

    return bootstrap((np.asarray(samples), np.asarray(baseline)), ratio, seed)


def median_difference(samples: Sequence[float], baseline: Sequence[float], seed: int = 0) -> Estimate:
    """Give the median of what each sample is above the baseline's at the same place.

    Args:
        samples: The samples.
        baseline: As many.
        seed: Decides the resamples.
    """
    return bootstrap((np.subtract(samples, baseline),), np.median, seed)


def bootstrap(data: tuple[npt.NDArray[Any], ...], statistic: Callable[..., Any], seed: int = 0) -> Estimate:
    """Give a statistic of some data with its percentile bootstrap interval.

    Args:
        data: One or more (n,) arrays; what stands at the same place belongs together. The interval is the figure itself
            where n is 1.
        statistic: Of such arrays, or of more dimensions along an `axis`.
        seed: Decides the resamples.
    """
    value = float(statistic(*data))
    if len(data[0]) < 2:
        return Estimate(value, value, value)
    interval = stats.bootstrap(
        data,
        statistic,
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=_RESAMPLES,
        batch=200,  # bounds the memory that resampling takes
        confidence_level=CONFIDENCE,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(value, float(interval.low), float(interval.high))
