"""What a search or a ranking gives, best first."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and how well it matches.

    Attributes:
        id: The document's position in the list that was ranked; for an `Index`, the id that `add` returned for it.
        score: The cosine with the query, or what `SemanticRanker` makes of it; at most 1, and higher is better.
        document: Its text.
    """

    id: int
    score: float
    document: str


def top_k_indices(scores: npt.NDArray[Any], k: int | None) -> npt.NDArray[np.intp]:
    """Give the positions of the highest scores, the highest first; of equal ones the earlier first.

    Args:
        scores: (n,), none of them NaN.
        k: How many to give at most; None gives all.
    """
    candidates = np.arange(len(scores))
    if k is not None and k < len(scores):
        candidates = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    return candidates[np.argsort(-scores[candidates], kind="stable")][:k]


def validate_top_k(k: int | None) -> None:
    """Check how many hits are asked for.

    Raises:
        InputError: If `k` is neither None nor a whole number of at least 1.
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
        raise InputError(f"{k!r} hits were asked for, expected a whole number of at least 1, or None for all")
