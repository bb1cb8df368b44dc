"""Centers of interest: settings, weights, updates, merges and scores. This module only computes; `store` saves them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._validation import validate_number
from edgeembed_runtime.errors import InputError, one_line, short_repr
from edgeembed_runtime.similarity import dot_products, normalize

Kind = Literal["interest", "disinterest"]

DEFAULT_NEAR_COSINE = 0.4
"""The `near_cosine` of an encoder whose bundle has no such value.

With the encoders in the wheel, one to four in a thousand pairs of unrelated passages reach this cosine. It is above
the values measured for those two encoders. So an encoder that was never measured is more likely to split one interest
into two centers than to merge two interests.
"""

_SECONDS_PER_DAY = 86_400
# A center that weighs nothing still has a cost and a share in a mean.
_MIN_WEIGHT = 1e-9


@dataclass(frozen=True, kw_only=True)
class InterestSettings:
    """Constants of the interest model. `SemanticRanker` documents the formulas and the source of each constant.

    They are stored in the file of the interests, and are those of everybody who uses it.

    Attributes:
        near_cosine: The threshold at which a text is near enough to an interest to be no new one. It joins the nearest
            center if their cosine is at least this; otherwise it starts a center. Above 0, at most 1. None, the
            default, is the value of an existing file; a new file takes that in the encoder's bundle (`near_cosine` in
            edgeembed.json), or 0.4 if the bundle has none. The right value depends on how an encoder spreads unrelated
            texts: `edgeembed export` takes the cosine that 2 % of random pairs of texts reach. For the encoders in the
            wheel it is 0.25. With it, 95 % of the first likes of simulated users were in a center of their own topic;
            with 0.2, 91 %. A higher value gives more centers, which rank slightly better (`docs/results/interests.md`).
        max_centers: The maximum number of centers of each kind. If a reaction starts one more, the two whose merge
            loses least become one. With 12, documents were ranked as well as without a maximum for simulated users
            with 6 interests, and slightly worse for those with 10. Choose twice the number that you expect.
        shift: The fraction of the way that a center moves toward a liked or disliked text, from 0 to 1.
        horizon_days: Days without use after which a center expires: its weight is 0, and it is removed.
        seconds_per_use: Seconds of viewing that weigh as much as one like.
        min_read_seconds: The minimum length of a view that refreshes or starts a center. A shorter view is a glance.
        max_view_seconds: The maximum number of seconds that one view adds, because a text may be left open unread.
        query_weight: The weight of the query's cosine in a document's score, from 0 to 1. With the default, a query
            outside the interests is answered about as well as without them.
    """

    near_cosine: float | None = None
    max_centers: int = 12
    shift: float = 0.1
    horizon_days: float = 30.0
    seconds_per_use: float = 60.0
    min_read_seconds: float = 20.0
    max_view_seconds: float = 300.0
    query_weight: float = 0.8

    def __post_init__(self) -> None:
        values = {setting.name: getattr(self, setting.name) for setting in fields(self)}
        if self.near_cosine is None:
            del values["near_cosine"]
        for name, value in values.items():
            validate_number(name, value)
            if name == "max_centers" and (not isinstance(value, int | np.integer) or not 1 <= value < 1 << 63):
                raise InputError(f"max_centers is {short_repr(value)}, expected an integer of at least 1, below 2^63")
            if name in ("near_cosine", "shift", "query_weight") and value > 1:
                raise InputError(f"{name} is {short_repr(value)}, expected at most 1")
            if name in ("near_cosine", "horizon_days", "seconds_per_use") and value == 0:
                raise InputError(f"{name} is 0, expected more than 0")
            # As Python's own numbers, which a file returns exactly as they were stored.
            object.__setattr__(self, name, int(value) if name == "max_centers" else float(value))


@dataclass(frozen=True)
class Center:
    """A center of interest or disinterest at the time it was read from the store.

    Attributes:
        id: Its id in the store. An id is never used again.
        kind: "interest" or "disinterest".
        example: The beginning of the text that started it; after a merge, that of the center that weighed more.
        uses: The number of likes, or of dislikes.
        views: The number of views.
        view_seconds: The total length of these views.
        first_used: When it, or a center that it absorbed, was started, in seconds since the epoch.
        last_used: When it was last used, in seconds since the epoch. A glance is not a use. This time never decreases.
        weight: Its weight when it was read; see `center_weight`.
        vector: (dimension,) float32, L2-normalized.
    """

    id: int
    kind: Kind
    example: str
    uses: int
    views: int
    view_seconds: float
    first_used: float
    last_used: float
    weight: float
    vector: npt.NDArray[np.float32] = field(repr=False, compare=False)


def center_weight(uses: int, view_seconds: float, age_seconds: float, settings: InterestSettings) -> float:
    """Return the weight of a center: its uses and views times a linear decay, which reaches 0 at the horizon.

    Args:
        uses: The number of likes, or of dislikes.
        view_seconds: The total length of its views.
        age_seconds: Seconds since its last use. A negative age, after a clock was set back, counts as 0.
        settings: The constants.

    Returns:
        A weight of at least 0.
    """
    if is_expired(age_seconds, settings):
        return 0.0
    freshness = 1 - max(age_seconds, 0) / (settings.horizon_days * _SECONDS_PER_DAY)
    return (uses + view_seconds / settings.seconds_per_use) * freshness


def is_expired(age_seconds: float, settings: InterestSettings) -> bool:
    """Return whether a center has not been used for the whole horizon, so that nothing of it counts any more."""
    return age_seconds >= settings.horizon_days * _SECONDS_PER_DAY


def nearest_center(
    centers: Sequence[Center], kind: Kind, embedding: npt.NDArray[np.float32], settings: InterestSettings
) -> Center | None:
    """Return the center with the highest cosine, or None if no cosine reaches the threshold.

    Args:
        centers: Centers of both kinds. The first one wins a tie.
        kind: The kind to consider.
        embedding: (dimension,) float32, L2-normalized.
        settings: Its `near_cosine` is the threshold.
    """
    candidates = [center for center in centers if center.kind == kind]
    if not candidates:
        return None
    cosines = _cosines(embedding[np.newaxis], candidates)[0]
    best = int(np.argmax(cosines))
    threshold = DEFAULT_NEAR_COSINE if settings.near_cosine is None else settings.near_cosine
    return candidates[best] if cosines[best] >= threshold else None


def shifted_vector(
    center: Center, embedding: npt.NDArray[np.float32], settings: InterestSettings
) -> npt.NDArray[np.float32]:
    """Return the center's vector after a text joined it: shifted toward the text's embedding, then L2-normalized."""
    return normalized_embedding(center.vector + settings.shift * (embedding - center.vector), len(embedding))


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


def interest_scores(centers: Sequence[Center], embeddings: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return how well each document fits the interests: the pull of the interests minus that of the disinterests.

    Args:
        centers: The user's centers.
        embeddings: (documents, dimension) float32, L2-normalized.

    Returns:
        (documents,) float32, from -1 to 1; all 0 without centers.
    """
    return _pull(centers, "interest", embeddings) - _pull(centers, "disinterest", embeddings)


def normalized_embedding(values: npt.ArrayLike, dimension: int) -> npt.NDArray[np.float32]:
    """Validate an embedding and return it L2-normalized.

    Args:
        values: The embedding, of any norm.
        dimension: The dimension that it must have.

    Returns:
        (dimension,) float32.

    Raises:
        InputError: If the embedding has another shape or type, is not finite, or is all zeros.
    """
    expected = f"{dimension} finite numbers from the store's encoder"
    try:
        with np.errstate(over="ignore"):  # values too large for float32 become infinite, which is rejected below
            embedding = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the embedding is {type(values).__name__} ({one_line(str(error))}), expected {expected}"
        ) from error
    if embedding.shape != (dimension,):
        raise InputError(f"the embedding has shape {embedding.shape}, expected {expected}")
    if not np.isfinite(embedding).all():
        raise InputError(f"the embedding contains NaN or infinity, expected {expected}")
    if not embedding.any():
        raise InputError("the embedding is all zeros: the text has no known word; expected a text with a known word")
    return normalize(embedding)


def _pull(centers: Sequence[Center], kind: Kind, embeddings: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return max over the centers of max(0, cosine) * weight / (weight + 1), for each embedding."""
    candidates = [center for center in centers if center.kind == kind]
    if not candidates:
        return np.zeros(len(embeddings), dtype=np.float32)
    shares = 1 - 1 / (1 + np.array([center.weight for center in candidates]))
    cosines = np.clip(_cosines(embeddings, candidates), 0, 1)
    pulls: npt.NDArray[np.float32] = (cosines * shares.astype(np.float32)).max(axis=1)
    return pulls


def _cosines(embeddings: npt.NDArray[np.float32], centers: Sequence[Center]) -> npt.NDArray[np.float32]:
    return dot_products(embeddings, np.stack([center.vector for center in centers]))
