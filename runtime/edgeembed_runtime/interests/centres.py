"""Centres of interest: what the reactions to texts add up to. Arithmetic only; nothing here is stored."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError

Kind = Literal["interest", "disinterest"]

_SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, kw_only=True)
class InterestSettings:
    """How reactions become centres of interest, and centres a score; `SemanticRanker` gives the formulas.

    Attributes:
        near_cosine: A text belongs to the nearest centre from this cosine on, else it starts a new one. Above 0,
            at most 1. The default suits the encoder in the wheel, which most pairs of neighbouring passages of an
            encyclopaedia reach and hardly any unrelated ones. Other encoders may need another.
        shift: Which part of the way to a liked or disliked text its centre moves. From 0 to 1.
        horizon_days: After how many days without use a centre counts no more.
        seconds_per_use: How many seconds of viewing weigh as much as one use.
        reading_seconds: From how many seconds on a view keeps a centre fresh, or starts one: shorter ones are
            glances.
        longest_view_seconds: A longer view counts as this long: a text left open is not read all night.
        relevance_share: What part of a document's score is its relevance, where there is a query. From 0 to 1. At
            the default a query outside the interests is answered about as well as without them.
    """

    near_cosine: float = 0.4
    shift: float = 0.1
    horizon_days: float = 30.0
    seconds_per_use: float = 60.0
    reading_seconds: float = 20.0
    longest_view_seconds: float = 300.0
    relevance_share: float = 0.8

    def __post_init__(self) -> None:
        for setting in fields(self):
            check_number(setting.name, getattr(self, setting.name))
        for name in ("near_cosine", "shift", "relevance_share"):
            if getattr(self, name) > 1:
                raise InputError(f"{name} is {getattr(self, name)!r}, expected at most 1")
        for name in ("near_cosine", "horizon_days", "seconds_per_use"):
            if getattr(self, name) == 0:
                raise InputError(f"{name} is 0, expected more")


@dataclass(frozen=True)
class Centre:
    """One thing that the user wants to read about, or does not, as it stood when it was read from the store.

    Attributes:
        id: Its number in the store, which no later centre gets.
        kind: "interest" or "disinterest".
        example: The beginning of the text that started it.
        uses: How many likes, or dislikes, it took.
        views: How many views it took.
        viewed_seconds: How long these were together.
        first_used: When it was started, in seconds since the epoch.
        last_used: When it was last used, likewise; glances do not count.
        weight: How much it counted when it was read: the uses that it stands for, less with every day since the
            last.
        vector: (dimension,) float32, of unit length.
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
    """Give a centre's weight, at least 0.

    Args:
        uses: How many likes, or dislikes, it took.
        viewed_seconds: How long it was viewed.
        age_seconds: How long ago it was last used. A clock that was set back may make this negative: that is now.
        settings: What counts how much.
    """
    freshness = 1 - max(age_seconds, 0) / (settings.horizon_days * _SECONDS_PER_DAY)
    return (uses + viewed_seconds / settings.seconds_per_use) * max(freshness, 0)


def nearest(
    centres: Sequence[Centre], kind: Kind, vector: npt.NDArray[np.float32], settings: InterestSettings
) -> Centre | None:
    """Give the centre of a kind that a text belongs to, or None if none is near enough; of equals the first.

    Args:
        centres: Those of all kinds.
        kind: The kind.
        vector: The text's: (dimension,) float32, of unit length.
        settings: How near is near enough.
    """
    own = [centre for centre in centres if centre.kind == kind]
    if not own:
        return None
    cosines = _cosines(vector[np.newaxis], own)[0]
    best = int(np.argmax(cosines))
    return own[best] if cosines[best] >= settings.near_cosine else None


def moved(centre: Centre, vector: npt.NDArray[np.float32], settings: InterestSettings) -> npt.NDArray[np.float32]:
    """Give where a centre is once it took a text: a part of the way towards it, at unit length again."""
    return as_unit(centre.vector + settings.shift * (vector - centre.vector), len(vector))


def interest_scores(centres: Sequence[Centre], vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Give how much each document is what the user wants to read.

    Args:
        centres: What is known of the user.
        vectors: (documents, dimension) float32, of unit length.

    Returns:
        (documents,) float32, from -1 to 1; 0 where nothing is known.
    """
    return _pull(centres, "interest", vectors) - _pull(centres, "disinterest", vectors)


def as_unit(vector: npt.ArrayLike, dimension: int) -> npt.NDArray[np.float32]:
    """Give a text's vector scaled to unit length.

    Args:
        vector: Its numbers.
        dimension: How many there must be.

    Returns:
        (dimension,) float32.

    Raises:
        InputError: If these are not so many finite numbers, or all are zero.
    """
    expected = f"{dimension} finite numbers, as the store's encoder gives them"
    try:
        # In float64, in which no square of a float32 overflows or vanishes.
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as that
            numbers = np.asarray(vector, dtype=np.float32).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the vector is {type(vector).__name__} ({error}), expected {expected}") from error
    if numbers.shape != (dimension,):
        raise InputError(f"the vector has the shape {numbers.shape}, expected {expected}")
    if not np.isfinite(numbers).all():
        raise InputError(f"the vector holds what is not finite, expected {expected}")
    if not numbers.any():
        raise InputError("the vector is all zeros, as of a text about nothing; expected a text with a known word")
    unit: npt.NDArray[np.float32] = (numbers / np.linalg.norm(numbers)).astype(np.float32)
    return unit


def check_number(name: str, value: float) -> None:
    """Check that a value is a finite number of at least 0.

    Raises:
        InputError: If it is not; it calls the value by `name`.
    """
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= sys.float_info.max:
        raise InputError(f"{name} is {value!r}, expected a finite number of at least 0")


def _pull(centres: Sequence[Centre], kind: Kind, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    own = [centre for centre in centres if centre.kind == kind]
    if not own:
        return np.zeros(len(vectors), dtype=np.float32)
    shares = 1 - 1 / (1 + np.array([centre.weight for centre in own]))
    pulls: npt.NDArray[np.float32] = (np.clip(_cosines(vectors, own), 0, 1) * shares.astype(np.float32)).max(axis=1)
    return pulls


def _cosines(vectors: npt.NDArray[np.float32], centres: Sequence[Centre]) -> npt.NDArray[np.float32]:
    # Not a matrix product: BLAS may score two equal rows differently, and then ties depend on their place.
    cosines: npt.NDArray[np.float32] = np.einsum("nd,cd->nc", vectors, np.stack([c.vector for c in centres]))
    return cosines
