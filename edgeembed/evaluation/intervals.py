"""95 % confidence intervals of scores, by scipy: how far a score would move with other texts of the same kind.

Means and rank correlations are resampled by items (percentile bootstrap, Efron and Tibshirani 1993, chapter 13), with a
fixed seed; shares are Wilson's (1927).
"""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

Bounds = tuple[float, float]
"""Lower and upper bound."""

MIN_ITEMS = 10
"""With fewer items there is no interval: resampling so few says little."""
RESAMPLES = 1000
_SEED = 0
_BATCH = 100  # resamples at once: for 5,000 pairs, each array takes 4 MB


def spearman_interval(first: npt.ArrayLike, second: npt.ArrayLike) -> Bounds | None:
    """Return the interval of Spearman's correlation, by resampling pairs.

    Each resample is ranked anew, ties at their mean rank, as `scipy.stats.spearmanr` does.

    Args:
        first: (n,) values.
        second: (n,) values of the same items.

    Returns:
        The bounds, -1 to 1; None with fewer than `MIN_ITEMS` pairs, or if a resample has one distinct value only.
    """
    from scipy.stats import pearsonr

    groups = [np.unique(values, return_inverse=True)[1] for values in (first, second)]

    def correlations(rows: npt.NDArray[np.intp], axis: int = -1) -> Any:  # noqa: ARG001  # the last, always
        ranks = [_ranks(group[np.atleast_2d(rows)]) for group in groups]
        return pearsonr(*ranks, axis=-1).statistic.reshape(rows.shape[:-1])

    return _bootstrap(np.arange(len(groups[0])), correlations)


def mean_interval(values: npt.ArrayLike) -> Bounds | None:
    """Return the interval of a mean, by resampling its items.

    Args:
        values: (n,) values, such as nDCG@10 of each query.

    Returns:
        The bounds; None with fewer than `MIN_ITEMS` values.
    """
    return _bootstrap(np.asarray(values, np.float64), np.mean)


def share_interval(count: int, items: int) -> Bounds | None:
    """Return Wilson's interval of a share, such as an accuracy.

    Args:
        count: How many items have the property.
        items: How many items there are.

    Returns:
        The bounds, 0 to 1; None with fewer than `MIN_ITEMS` items.
    """
    from scipy.stats import binomtest

    if items < MIN_ITEMS:
        return None
    low, high = binomtest(count, items).proportion_ci(confidence_level=0.95, method="wilson")
    return float(low), float(high)


def scaled(bounds: Bounds | None, factor: float = 100) -> Bounds | None:
    """Return an interval on another scale, such as percent."""
    return None if bounds is None else (factor * bounds[0], factor * bounds[1])


def _bootstrap(items: npt.NDArray[Any], statistic: Any) -> Bounds | None:
    from scipy.stats import bootstrap

    if len(items) < MIN_ITEMS:
        return None
    options = {"n_resamples": RESAMPLES, "batch": _BATCH, "method": "percentile", "rng": _SEED}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of constant resamples, with which there is no interval
        found = bootstrap((items,), statistic, **options).confidence_interval
    return (float(found.low), float(found.high)) if np.isfinite([found.low, found.high]).all() else None


def _ranks(groups: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """Return the ranks of values given by their place among the distinct values, ties at their mean; (resamples, n)."""
    count, items = groups.shape
    places = groups + items * np.arange(count)[:, None]
    totals = np.bincount(places.ravel(), minlength=count * items).reshape(count, items)
    middles = np.cumsum(totals, axis=1) - (totals - 1) / 2
    ranks: npt.NDArray[np.float64] = np.take_along_axis(middles, groups, axis=1)
    return ranks
