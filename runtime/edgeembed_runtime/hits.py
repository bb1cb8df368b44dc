"""What a search or a ranking gives, best first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and how well it matches.

    Attributes:
        index: Its position among the documents that were given.
        score: The cosine with the query, at most 1; higher is better.
        document: Its text.
    """

    index: int
    score: float
    document: str


def best_hits(
    vectors: npt.NDArray[np.float32], query: npt.NDArray[np.float32], documents: Sequence[str], k: int | None
) -> list[Hit]:
    """Give the documents whose vectors are nearest to the query's, best first; of equals the earlier first.

    Args:
        vectors: (documents, dimension) float32, of unit length.
        query: (dimension,) float32, of unit length.
        documents: The texts that the vectors stand for.
        k: How many to give at most; None gives all.

    Raises:
        InputError: If `k` is no whole number of at least 1.
    """
    check_count(k)
    # Not `vectors @ query`: BLAS may score two equal rows differently, and then ties depend on their place.
    scores = np.einsum("ij,j->i", vectors, query)
    return [Hit(int(i), float(scores[i]), documents[i]) for i in _best_first(scores, k)]


def check_count(k: int | None) -> None:
    """Check how many hits are asked for.

    Raises:
        InputError: If `k` is neither None nor a whole number of at least 1.
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
        raise InputError(f"{k!r} hits were asked for, expected a whole number of at least 1, or None for all")


def _best_first(scores: npt.NDArray[np.float32], k: int | None) -> npt.NDArray[np.intp]:
    candidates = np.arange(len(scores))
    if k is not None and k < len(scores):
        candidates = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    return candidates[np.argsort(-scores[candidates], kind="stable")][:k]
