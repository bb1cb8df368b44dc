"""Medians with quartiles, and means and ratios over processes with 95 % confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

Values = Sequence[float] | npt.NDArray[np.floating[Any]]

CONFIDENCE = 0.95
# With two processes the interval spans 12.7 standard errors to each side, and says nothing.
FEWEST_FOR_INTERVAL = 3


@dataclass(frozen=True)
class Spread:
    """A median and its quartiles, in the unit of the samples."""

    q1: float
    median: float
    q3: float


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % confidence interval.

    Attributes:
        value: The figure.
        low: The lower end of the interval; None if there are too few processes for one.
        high: The upper end, likewise.
        reason: Why there is no interval, one line; None if there is one.
    """

    value: float
    low: float | None
    high: float | None
    reason: str | None = None


def spread(samples: Sequence[float]) -> Spread:
    """Return the median and the quartiles of some samples."""
    return Spread(*(float(quantile) for quantile in np.quantile(samples, (0.25, 0.5, 0.75))))


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the quantile of some samples at a share between 0 and 1."""
    return float(np.quantile(samples, share))


def mean_estimate(values: Values) -> Estimate:
    """Return the mean of some values with its 95 % Student-t interval.

    Calls within one process share its memory layout and are not independent, so the values are to be one for each
    process.

    Args:
        values: One value for each process, in any unit.

    Returns:
        The mean and its interval in the unit of the values; no interval, and the reason, for fewer than three values.
    """
    count, mean = len(values), float(np.mean(values))
    if count < FEWEST_FOR_INTERVAL:
        measured = "1 process was" if count == 1 else f"{count} processes were"
        return Estimate(
            mean, None, None, f"{measured} measured; a confidence interval takes at least {FEWEST_FOR_INTERVAL}"
        )
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * standard_error(values)
    return Estimate(mean, mean - half, mean + half)


def ratio_estimate(samples: Values, baseline: Values) -> Estimate:
    """Return the geometric mean of ratios with its 95 % interval: a Student-t interval on the logarithms.

    Args:
        samples: One value above 0 for each process, such as its median latency.
        baseline: As many, each of the process measured beside that one, so that what slowed both cancels.

    Returns:
        The ratio and its interval; no interval, and the reason, for fewer than three processes.
    """
    logarithms = mean_estimate(np.log(samples) - np.log(baseline))
    low, high = (None if end is None else float(np.exp(end)) for end in (logarithms.low, logarithms.high))
    return Estimate(float(np.exp(logarithms.value)), low, high, logarithms.reason)


def standard_error(values: Values) -> float:
    """Return the standard error of the mean of two values or more."""
    return float(np.std(values, ddof=1)) / float(np.sqrt(len(values)))
