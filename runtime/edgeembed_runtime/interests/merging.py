"""Merging of centers, so that hundreds of reactions stay a handful of interests."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from edgeembed_runtime.interests.centers import Center, InterestSettings, center_weight
from edgeembed_runtime.similarity import dot_products, normalize

# A center that weighs nothing still has a cost and a share in a mean.
_MIN_WEIGHT = 1e-9


def cheapest_merge(centers: Sequence[Center]) -> tuple[Center, Center]:
    """Return the two centers whose merge loses least: the one that survives, and the one that it absorbs.

    The cost is that of Ward (1963), "Hierarchical grouping to optimize an objective function": the increase of the
    weighted sum of squared distances between texts and their centers,

        w_a w_b / (w_a + w_b) * ||a - b||^2

    A light center therefore joins its nearest neighbor before two heavy ones, which a user knows as different
    interests, join each other.

    Args:
        centers: At least two centers of one kind, the oldest first.

    Returns:
        The center with more uses and views, or the first one of two with the same number; and the other.
    """
    vectors = np.stack([center.vector for center in centers])
    weights = np.maximum([center.weight for center in centers], _MIN_WEIGHT)
    first, second = np.triu_indices(len(centers), 1)
    distances = 1 - dot_products(vectors, vectors)[first, second].astype(np.float64)  # half the squared distances
    costs = distances / (1 / weights[first] + 1 / weights[second])
    cheapest = int(np.argmin(costs))
    older, newer = centers[first[cheapest]], centers[second[cheapest]]
    return (newer, older) if newer.uses + newer.views > older.uses + older.views else (older, newer)


def merge_centers(survivor: Center, absorbed: Center, now: float, settings: InterestSettings) -> Center:
    """Return the center that stands for two.

    Its id is the survivor's, its example that of the heavier one, if that has one. Its vector is the mean of both,
    weighted and L2-normalized. Uses and views are added up; the times are the first use and the last use of either.

    Args:
        survivor: The center whose id remains.
        absorbed: The center that disappears.
        now: Seconds since the epoch, for the weight.
        settings: The constants.
    """
    weights = np.maximum([survivor.weight, absorbed.weight], _MIN_WEIGHT)
    mean = weights / weights.sum() @ np.stack([survivor.vector, absorbed.vector]).astype(np.float64)
    has_direction = np.linalg.norm(mean) > 1e-3  # opposite vectors cancel each other
    lighter, heavier = sorted((absorbed, survivor), key=lambda center: center.weight)
    uses, view_seconds = survivor.uses + absorbed.uses, survivor.view_seconds + absorbed.view_seconds
    last_used = max(survivor.last_used, absorbed.last_used)
    return replace(
        survivor,
        example=heavier.example or lighter.example,
        uses=uses,
        views=survivor.views + absorbed.views,
        view_seconds=view_seconds,
        first_used=min(survivor.first_used, absorbed.first_used),
        last_used=last_used,
        weight=center_weight(uses, view_seconds, now - last_used, settings),
        vector=normalize(mean.astype(np.float32)) if has_direction else survivor.vector,
    )
