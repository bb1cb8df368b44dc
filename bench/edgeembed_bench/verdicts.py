"""Whether two subjects can be told apart, when each was measured in several processes beside the other."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from edgeembed_bench.estimates import Estimate, bootstrap, median_ratio

LEVEL = 0.01  # chance of seeing a difference between two that are alike
# Wilcoxon's test cannot reach that level with fewer: half of 2^-7.
FEWEST_PROCESSES = 8
# A change of this size is what a run is meant to show.
WORTH_SEEING = 0.05

Clusters = Sequence[Sequence[float]]
"""Times by process, as many in each; the texts in them are the same for all subjects of a run."""


@dataclass(frozen=True)
class Verdict:
    """Whether a subject's latency differs from the baseline's.

    Attributes:
        ratio: Its median latency as a multiple of the baseline's, with the 95 % interval.
        differs: Whether it does; None if there are too few processes to tell.
        p_value: The chance of processes that agree as much if both were alike (Wilcoxon's signed-rank test over the
            medians of the texts' ratios, a process each); None likewise.
        smallest_seen: The least relative difference that such a run tells apart nine times in ten.
    """

    ratio: Estimate
    differs: bool | None
    p_value: float | None
    smallest_seen: float

    @property
    def is_noisy(self) -> bool:
        """Whether a difference of 5 % would often have been lost in the scatter."""
        return self.smallest_seen > WORTH_SEEING


def clustered_ratio(samples: Clusters, baseline: Clusters, seed: int = 0) -> Estimate:
    """Give the median of some samples as a multiple of the baseline's, processes and not calls being resampled.

    Two processes of one program differ a little for good, by where their memory lies; an interval over calls alone
    would take that for a difference between programs.

    Args:
        samples: Times by process.
        baseline: As many, measured beside them.
        seed: Decides the resamples.

    Returns:
        The ratio of the medians over all calls, and its 95 % bootstrap interval over processes; over calls, in pairs,
        if there is but one process.
    """
    if len(samples) < 2:
        return median_ratio(samples[0], baseline[0], seed)
    top, bottom = np.asarray(samples), np.asarray(baseline)  # (processes, calls)

    def ratio(chosen: npt.NDArray[np.int_], axis: int = -1) -> Any:
        pooled = (each[chosen].reshape(*chosen.shape[:-1], -1) for each in (top, bottom))
        return operator.truediv(*(np.median(each, axis=axis) for each in pooled))

    return bootstrap((np.arange(len(top)),), ratio, seed)


def verdict(samples: Clusters, baseline: Clusters) -> Verdict:
    """Tell whether two subjects differ: whether their processes agree on which is the faster.

    Args:
        samples: Times by process.
        baseline: As many, measured beside them.
    """
    ratio = clustered_ratio(samples, baseline)
    # Text by text: how long the texts are then has no part in how far the processes scatter.
    logarithms = np.median(np.log(samples) - np.log(baseline), axis=1)
    scatter = bootstrap((logarithms,), np.mean)
    # As wide as the 95 % interval: 3.9 standard errors, 2.6 for the level of 1 % and 1.3 for nine times in ten.
    smallest_seen = scatter.high - scatter.low
    if len(logarithms) < FEWEST_PROCESSES:
        return Verdict(ratio, None, None, smallest_seen)
    if not logarithms.any():  # a subject beside itself
        return Verdict(ratio, differs=False, p_value=1.0, smallest_seen=smallest_seen)
    p_value = float(stats.wilcoxon(logarithms).pvalue)
    return Verdict(ratio, p_value < LEVEL, p_value, smallest_seen)
