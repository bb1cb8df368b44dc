"""Centers of interest: their settings, weights, updates and scores. Pure arithmetic; storage is in `store`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.interests.messages import one_line, shown

Kind = Literal["interest", "disinterest"]

DEFAULT_NEAR_COSINE = 0.4
"""`near_cosine` of an encoder whose bundle states none.

With the encoders in the wheel, one to four in a thousand pairs of unrelated passages reach it: above their own
values, so that an encoder that nobody measured rather starts a second center than merges two interests.
"""

_SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, kw_only=True)
class InterestSettings:
    """Constants that turn reactions into centers of interest and centers into scores.

    The formulas, and which constants come from where, are in `SemanticRanker`.

    Attributes:
        near_cosine: A text joins the nearest center if their cosine is at least this, else it starts a new center.
            Above 0, at most 1. None, the default, takes the value in the encoder's bundle (`near_cosine` in
            edgeembed.json), and 0.4 if the bundle states none. The right value depends on how an encoder spreads
            unrelated texts. For the two in the wheel it was chosen on 9,000 pairs of adjacent passages (one to
            three sentences) of Wikipedia: a user has 20 centers, each a passage of another article, and the value
            maximizes the mean of two rates, of passages that join the center of their own article and of passages
            of a new article that join none. That gives 0.33 for mini (79 % and 92 %) and 0.36 for nano (71 % and
            90 %); with 10 centers it would be 0.31 for both, with 40 it would be 0.35 and 0.40.
        shift: The fraction of the way that a center moves toward a liked or disliked text. From 0 to 1.
        horizon_days: Days without use after which the weight of a center is 0.
        seconds_per_use: Seconds of viewing that weigh as much as one use.
        reading_seconds: The shortest view that refreshes a center or starts one. A shorter view is a glance.
        longest_view_seconds: The most seconds that one view counts: a text left open is not read all night.
        relevance_share: The share of the query's cosine in a document's score, from 0 to 1. At the default a query
            outside the interests is answered about as well as without them.
    """

    near_cosine: float | None = None
    shift: float = 0.1
    horizon_days: float = 30.0
    seconds_per_use: float = 60.0
    reading_seconds: float = 20.0
    longest_view_seconds: float = 300.0
    relevance_share: float = 0.8

    def __post_init__(self) -> None:
        given = {setting.name: getattr(self, setting.name) for setting in fields(self)}
        if self.near_cosine is None:
            del given["near_cosine"]
        for name, value in given.items():
            check_number(name, value)
            if name in ("near_cosine", "shift", "relevance_share") and value > 1:
                raise InputError(f"{name} is {shown(value)}, expected at most 1")
            if name in ("near_cosine", "horizon_days", "seconds_per_use") and value == 0:
                raise InputError(f"{name} is 0, expected more")


@dataclass(frozen=True)
class Center:
    """A center of interest or disinterest, as it was when it was read from the store.

    Attributes:
        id: Its number in the store, which is never given to another center.
        kind: "interest" or "disinterest".
        example: The beginning of the text that started it.
        uses: The number of likes, or dislikes.
        views: The number of views.
        viewed_seconds: The total length of these views.
        first_used: The time it was started, in seconds since the epoch.
        last_used: The latest time of a use, likewise. Glances are no uses, and no reaction sets it back.
        weight: Its weight at the time it was read; see `weight`.
        vector: (dimension,) float32, L2-normalized.
    """

    id: int
    kind: Kind
    example: str
    uses: int
    views: int
    viewed_seconds: float
    first_used: float
    last_used: float
    weight: float
    vector: npt.NDArray[np.float32] = field(repr=False, compare=False)


def weight(uses: int, viewed_seconds: float, age_seconds: float, settings: InterestSettings) -> float:
    """Return the weight of a center: (uses + views in units of a use) times a linear decay to 0 at the horizon.

    Args:
        uses: The number of likes, or dislikes.
        viewed_seconds: The total length of its views.
        age_seconds: Seconds since its last use. Negative, after a clock was set back, counts as 0.
        settings: The constants.

    Returns:
        At least 0.
    """
    freshness = 1 - max(age_seconds, 0) / (settings.horizon_days * _SECONDS_PER_DAY)
    return (uses + viewed_seconds / settings.seconds_per_use) * freshness if freshness > 0 else 0.0


def nearest(
    centers: Sequence[Center], kind: Kind, vector: npt.NDArray[np.float32], settings: InterestSettings
) -> Center | None:
    """Return the nearest center of a kind, or None if its cosine is below the threshold; the first one of a tie.

    Args:
        centers: Centers of both kinds.
        kind: The kind to look among.
        vector: The text's vector: (dimension,) float32, L2-normalized.
        settings: Its `near_cosine` is the threshold.
    """
    own = [center for center in centers if center.kind == kind]
    if not own:
        return None
    cosines = _cosines(vector[np.newaxis], own)[0]
    best = int(np.argmax(cosines))
    threshold = DEFAULT_NEAR_COSINE if settings.near_cosine is None else settings.near_cosine
    return own[best] if cosines[best] >= threshold else None


def moved(center: Center, vector: npt.NDArray[np.float32], settings: InterestSettings) -> npt.NDArray[np.float32]:
    """Return the center's new vector after a text joined it: moved toward the text, then L2-normalized."""
    return as_unit(center.vector + settings.shift * (vector - center.vector), len(vector))


def interest_scores(centers: Sequence[Center], vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return how well each document fits the user's interests: pull of interests minus pull of disinterests.

    Args:
        centers: The user's centers.
        vectors: (documents, dimension) float32, L2-normalized.

    Returns:
        (documents,) float32, from -1 to 1; all 0 without centers.
    """
    return _pull(centers, "interest", vectors) - _pull(centers, "disinterest", vectors)


def as_unit(vector: npt.ArrayLike, dimension: int) -> npt.NDArray[np.float32]:
    """Return a vector L2-normalized.

    Args:
        vector: The vector.
        dimension: The length it must have.

    Returns:
        (dimension,) float32.

    Raises:
        InputError: If the vector has another shape, is not finite, or is all zeros.
    """
    expected = f"{dimension} finite numbers from the store's encoder"
    try:
        # In float64, in which no square of a float32 overflows or vanishes.
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as that
            numbers = np.asarray(vector, dtype=np.float32).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the vector is {type(vector).__name__} ({one_line(str(error))}), expected {expected}"
        ) from error
    if numbers.shape != (dimension,):
        raise InputError(f"the vector has the shape {numbers.shape}, expected {expected}")
    if not np.isfinite(numbers).all():
        raise InputError(f"the vector holds a number that is not finite, expected {expected}")
    if not numbers.any():
        raise InputError("the vector is all zeros, so its text has no known word; expected a text with a known word")
    unit: npt.NDArray[np.float32] = (numbers / np.linalg.norm(numbers)).astype(np.float32)
    return unit


def check_number(name: str, value: float) -> None:
    """Raise InputError, which names the value, unless it is a finite number of at least 0."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= sys.float_info.max:
        raise InputError(f"{name} is {shown(value)}, expected a finite number of at least 0")


def _pull(centers: Sequence[Center], kind: Kind, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    own = [center for center in centers if center.kind == kind]
    if not own:
        return np.zeros(len(vectors), dtype=np.float32)
    shares = 1 - 1 / (1 + np.array([center.weight for center in own]))
    pulls: npt.NDArray[np.float32] = (np.clip(_cosines(vectors, own), 0, 1) * shares.astype(np.float32)).max(axis=1)
    return pulls


def _cosines(vectors: npt.NDArray[np.float32], centers: Sequence[Center]) -> npt.NDArray[np.float32]:
    # Not a matrix product: BLAS may score two equal rows differently, and then ties depend on their place.
    cosines: npt.NDArray[np.float32] = np.einsum("nd,cd->nc", vectors, np.stack([c.vector for c in centers]))
    return cosines
