"""Quartiles, confidence intervals and the significance test; intervals and tests are over processes, not calls.

The latencies of two subjects are compared by one statistic: each process's median log-ratio over the texts that both
encoded, averaged over processes. The ratio is its exponential; the interval and the test are Student's t on the same
values, so that they never contradict each other.

Two processes of the same program differ a little in speed as long as they live, because of their memory layout. An
interval over single calls would mistake that difference for one between programs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Values = Sequence[float] | npt.NDArray[np.floating[Any]]

ProcessTimes = Sequence[Sequence[float]]
"""Times of single texts for each process, shape (processes, texts); all subjects of a run encode the same texts."""

CONFIDENCE = 0.95
MIN_FOR_INTERVAL = 3  # processes; with two, the interval is the mean plus or minus 12.7 standard errors

SIGNIFICANCE_LEVEL = 0.01
POWER = 0.9  # of the test at the minimum detectable effect
MIN_FOR_TEST = 8  # processes; the scatter of fewer is too uncertain for a statement at the 1 % level
LARGE_EFFECT = 0.05  # a run that cannot detect a difference of 5 % counts as noisy


@dataclass(frozen=True)
class Quartiles:
    """The median and the quartiles of some samples, in the unit of the samples."""

    q1: float
    median: float
    q3: float

    @classmethod
    def of(cls, samples: Values) -> Self:
        """Return the median and the quartiles of some samples."""
        return cls(*(float(value) for value in np.quantile(samples, (0.25, 0.5, 0.75))))


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % confidence interval.

    Attributes:
        value: The point estimate.
        low: Lower bound; None if there are too few processes for an interval.
        high: Upper bound; None if there are too few processes for an interval.
        reason: Why there is no interval, one line; None if there is one.
    """

    value: float
    low: float | None
    high: float | None
    reason: str | None = None


@dataclass(frozen=True)
class SignificanceTest:
    """Comparison of a subject's latency with that of the baseline.

    Attributes:
        ratio: Latency divided by that of the baseline on the same texts, with its 95 % interval, see `paired_ratio`.
        is_significant: Whether the difference is significant at the 1 % level; None if there are too few processes.
        p_value: Two-sided p-value of Student's t-test that the ratio is 1, on the values of the interval; None if there
            are too few processes.
        min_detectable_effect: Minimum relative difference that the test would detect in nine of ten such runs; None if
            there are too few processes for an interval.
    """

    ratio: Interval
    is_significant: bool | None
    p_value: float | None
    min_detectable_effect: float | None

    @property
    def is_noisy(self) -> bool:
        """Whether the test would miss a difference of 5 % in more than one of ten runs, or the effect is unknown."""
        return self.min_detectable_effect is None or self.min_detectable_effect > LARGE_EFFECT


def mean_interval(values: Values) -> Interval:
    """Return the mean of some values with its 95 % Student-t interval.

    Args:
        values: One value for each process, in any unit.

    Returns:
        The mean and its interval in the unit of the values; no interval, and the reason, for fewer than three values.
    """
    count, mean = len(values), float(np.mean(values))
    if count < MIN_FOR_INTERVAL:
        measured = "1 process was" if count == 1 else f"{count} processes were"
        reason = f"{measured} measured; a confidence interval needs at least {MIN_FOR_INTERVAL}"
        return Interval(mean, None, None, reason)
    from scipy import stats  # takes a second, which --help must not

    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * standard_error(values)
    return Interval(mean, mean - half, mean + half)


def ratio_interval(values: Values, baseline: Values) -> Interval:
    """Return the geometric mean of ratios with its 95 % interval: a Student-t interval on their logarithms.

    Args:
        values: One value above 0 for each process, such as its median latency.
        baseline: One value for each process of the baseline, measured in the same round, so that a drift cancels.

    Returns:
        The ratio and its interval; no interval, and the reason, for fewer than three processes.
    """
    return _geometric(np.log(values) - np.log(baseline))


def paired_ratio(times: ProcessTimes, baseline: ProcessTimes) -> Interval:
    """Return the ratio of times of the same texts with its 95 % interval over processes.

    Args:
        times: Times for each process, in any unit.
        baseline: Times of the baseline's processes, one per round like `times`, on the same texts.

    Returns:
        The geometric mean over processes of the median ratio over texts, and its Student-t interval.
    """
    return _geometric(_median_log_ratios(times, baseline))


def compare_times(times: ProcessTimes, baseline: ProcessTimes) -> SignificanceTest:
    """Test whether two subjects differ in latency: Student's t-test over the processes.

    Args:
        times: Times for each process, in any unit.
        baseline: Times of the baseline's processes, one per round like `times`, on the same texts.

    Returns:
        The ratio, and the result of the test of its logarithm.
    """
    logarithms = _median_log_ratios(times, baseline)
    ratio, effect = _geometric(logarithms), _min_detectable_effect(logarithms)
    if len(logarithms) < MIN_FOR_TEST:
        return SignificanceTest(ratio, None, None, effect)
    p_value = _p_value(logarithms)
    return SignificanceTest(ratio, p_value < SIGNIFICANCE_LEVEL, p_value, effect)


def standard_error(values: Values) -> float:
    """Return the standard error of the mean of two or more values."""
    return float(np.std(values, ddof=1)) / float(np.sqrt(len(values)))


def _median_log_ratios(times: ProcessTimes, baseline: ProcessTimes) -> npt.NDArray[np.float64]:
    """Return each process's median log-ratio; pairing by text removes the variance from texts of different lengths."""
    medians: npt.NDArray[np.float64] = np.median(np.log(times) - np.log(baseline), axis=1)
    return medians


def _geometric(logarithms: Values) -> Interval:
    """Return the geometric mean and its interval from one logarithm for each process."""
    mean = mean_interval(logarithms)
    low, high = (None if bound is None else float(np.exp(bound)) for bound in (mean.low, mean.high))
    return Interval(float(np.exp(mean.value)), low, high, mean.reason)


def _p_value(logarithms: Values) -> float:
    """Return the two-sided p-value of Student's t-test that the mean is 0."""
    mean, error = abs(float(np.mean(logarithms))), standard_error(logarithms)
    if error == 0:  # all processes agree, as those of a subject compared with itself
        return float(mean == 0)
    from scipy import stats  # takes a second, which --help must not

    return float(2 * stats.t.sf(mean / error, len(logarithms) - 1))


def _min_detectable_effect(logarithms: Values) -> float | None:
    """Return the relative difference that a t-test at `SIGNIFICANCE_LEVEL` detects with probability `POWER`."""
    if len(logarithms) < MIN_FOR_INTERVAL:
        return None
    freedom = len(logarithms) - 1
    from scipy import stats  # takes a second, which --help must not

    errors = stats.t.ppf(1 - SIGNIFICANCE_LEVEL / 2, freedom) + stats.t.ppf(POWER, freedom)
    return float(np.expm1(errors * standard_error(logarithms)))
