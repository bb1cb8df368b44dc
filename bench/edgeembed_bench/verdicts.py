"""Whether two subjects can be told apart, when each was measured in several processes beside the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from edgeembed_bench.stats import FEWEST_FOR_INTERVAL, Estimate, Values, ratio_estimate, standard_error

LEVEL = 0.01  # chance of seeing a difference between two that are alike
POWER = 0.9  # chance of seeing one as large as `Verdict.smallest_seen`
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
        p_value: Two-sided p-value of Wilcoxon's signed-rank test over the processes, each the median of its texts'
            log-ratios; None likewise.
        smallest_seen: The smallest relative difference that such a run tells apart nine times in ten; None if there
            are too few processes for an interval.
    """

    ratio: Estimate
    differs: bool | None
    p_value: float | None
    smallest_seen: float | None

    @property
    def is_noisy(self) -> bool:
        """Whether a difference of 5 % would often have been lost in the scatter."""
        return self.smallest_seen is None or self.smallest_seen > WORTH_SEEING


def clustered_ratio(samples: Clusters, baseline: Clusters) -> Estimate:
    """Return the median of some samples as a multiple of the baseline's, with its 95 % interval over processes.

    Two processes of one program differ a little for good, by where their memory lies; an interval over calls alone
    would take that for a difference between programs.

    Args:
        samples: Times by process, in any unit.
        baseline: As many, measured beside them.

    Returns:
        The geometric mean over processes of the ratio of the two medians, and its Student-t interval on the log-ratios.
    """
    return ratio_estimate(np.median(samples, axis=1), np.median(baseline, axis=1))


def verdict(samples: Clusters, baseline: Clusters) -> Verdict:
    """Test whether two subjects differ: whether their processes agree on which is the faster.

    Args:
        samples: Times by process, in any unit.
        baseline: As many, measured beside them.
    """
    ratio = clustered_ratio(samples, baseline)
    # Text by text: how long the texts are then has no part in how far the processes scatter.
    logarithms = np.median(np.log(samples) - np.log(baseline), axis=1)
    smallest_seen = _smallest_seen(logarithms)
    if len(logarithms) < FEWEST_PROCESSES:
        return Verdict(ratio, None, None, smallest_seen)
    if not logarithms.any():  # a subject beside itself
        return Verdict(ratio, differs=False, p_value=1.0, smallest_seen=smallest_seen)
    p_value = float(stats.wilcoxon(logarithms).pvalue)
    return Verdict(ratio, p_value < LEVEL, p_value, smallest_seen)


def _smallest_seen(logarithms: Values) -> float | None:
    """Return the relative difference whose standard errors reach the level of the test at the power wanted."""
    freedom = len(logarithms) - 1
    if len(logarithms) < FEWEST_FOR_INTERVAL:
        return None
    errors = stats.t.ppf(1 - LEVEL / 2, freedom) + stats.t.ppf(POWER, freedom)
    return float(np.expm1(errors * standard_error(logarithms)))
