"""Approximate search: find candidates for the nearest vectors, whose exact similarity is computed later."""

import functools
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.engine import Engine, IndexPrecision
from edgeembed_runtime.index.vectors import GrowingArray, StoredVectors
from edgeembed_runtime.similarity import top_k_indices

Positions = npt.NDArray[np.intp]
Arrays = Mapping[str, npt.NDArray[Any]]

SIGNS = "signs"
# Exact similarities of fewer candidates take no time worth saving.
_MIN_CANDIDATES = 100


class CandidateSearch(Protocol):
    """Finds vectors that are probably close to a query.

    Several threads may call `candidates` at once while no other method runs.
    """

    def update(self, vectors: StoredVectors) -> None:
        """Index the vectors that were added since the last call."""

    def is_current(self, vectors: StoredVectors) -> bool:
        """Return whether the vectors are indexed, so that `candidates` may be called."""

    def candidates(self, query: npt.NDArray[np.float32], top_k: int) -> Positions | None:
        """Return the positions of candidates for the nearest vectors.

        Args:
            query: (dimension,) float32, L2-normalized.
            top_k: The number of hits that the candidates must contain.

        Returns:
            Distinct positions, or None if all vectors should be compared.
        """

    def select(self, positions: Positions) -> "CandidateSearch":
        """Return a new instance for the vectors that remain after a removal; it needs an `update`."""

    def arrays(self) -> Arrays:
        """Return the arrays to save, by name, so that opening an index need not compute them again."""


class BinarySearch:
    """Finds the vectors whose sign bits have the smallest Hamming distance to those of the query.

    Args:
        rescore: The number of candidates per requested hit.
        dimension: The dimension of the vectors.
        arrays: The saved "signs", (n, ceil(dimension / 64)) uint64, if there are any.
    """

    def __init__(self, rescore: int, dimension: int, arrays: Arrays) -> None:
        self._rescore = rescore
        self._dimension = dimension
        words = (dimension + 63) // 64
        self._signs = GrowingArray(arrays.get(SIGNS, np.empty((0, words), dtype="<u8")))

    def update(self, vectors: StoredVectors) -> None:
        """Pack the sign bits of the vectors that were added."""
        if len(self._signs) > len(vectors):  # an addition was interrupted
            self._signs = GrowingArray(self._signs.rows[: len(vectors)])
        for block in vectors.blocks(start=len(self._signs)):
            self._signs = self._signs.append(pack_signs(vectors.rows[block]))

    def is_current(self, vectors: StoredVectors) -> bool:
        """Return whether there are sign bits for exactly these vectors."""
        return len(self._signs) == len(vectors)

    def candidates(self, query: npt.NDArray[np.float32], top_k: int) -> Positions | None:
        """Return the vectors with the smallest Hamming distances; ties keep their order."""
        count = max(_MIN_CANDIDATES, self._rescore * top_k)
        if count >= len(self._signs):
            return None
        return top_k_indices(-_hamming_distances(self._signs.rows, pack_signs(query[None])), count)

    def select(self, positions: Positions) -> "BinarySearch":
        """Return an instance with the sign bits of some of the vectors."""
        known = positions[positions < len(self._signs)]
        return BinarySearch(self._rescore, self._dimension, {SIGNS: self._signs.rows[known]})

    def arrays(self) -> Arrays:
        """Return the sign bits."""
        return {SIGNS: self._signs.rows}


def new_candidate_search(
    engine: Engine, precision: IndexPrecision, dimension: int, arrays: Arrays | None = None
) -> CandidateSearch | None:
    """Return the candidate search of an engine; None if the query is compared with every vector.

    Args:
        engine: The engine.
        precision: The precision of the vectors.
        dimension: The dimension of the vectors.
        arrays: The saved arrays of such a search, if there are any. They are validated.

    Raises:
        InputError: If the engine does not support the precision, or an array is invalid.
        MissingExtraError: If the engine needs faiss, which is not installed.
    """
    saved = {} if arrays is None else arrays
    if precision == "binary":
        if engine.name != "numpy":
            raise InputError(f"the engine is {engine.name}, expected numpy for the precision binary; choose either")
        return BinarySearch(engine.rescore, dimension, saved)
    if engine.name == "numpy":
        return None
    from edgeembed_runtime.index.faiss import HnswSearch, IvfSearch

    return IvfSearch(engine, dimension, saved) if engine.name == "faiss-ivf" else HnswSearch(engine, dimension)


def pack_signs(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.uint64]:
    """Return (n, ceil(dimension / 64)) words with one bit per element, set if the element is positive."""
    packed = np.packbits(vectors > 0, axis=1)
    padded = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    return padded.view("<u8")


def _hamming_distances(signs: npt.NDArray[np.uint64], query: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    """Return the (n,) number of bits in which each row differs from the query."""
    differing = signs ^ query
    # NumPy 1 has no bitwise_count.
    counts = np.bitwise_count(differing) if hasattr(np, "bitwise_count") else _bit_counts()[differing.view("<u2")]
    distances: npt.NDArray[np.int32] = np.einsum("ij->i", counts.astype(np.int32))
    return distances


@functools.cache
def _bit_counts() -> npt.NDArray[np.uint8]:
    """Return the (65536,) number of bits in each 16-bit integer."""
    return np.array([number.bit_count() for number in range(1 << 16)], dtype=np.uint8)
