"""Binary prefilter: candidates by the Hamming distance of sign bits."""

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.index.candidates import Arrays, Positions
from edgeembed_runtime.index.vectors import GrowingArray, StoredVectors
from edgeembed_runtime.similarity import top_k_indices

_SIGNS = "signs"
# Exact similarities of fewer candidates take no time worth saving.
_MIN_CANDIDATES = 100
_BIT_COUNTS = np.array([number.bit_count() for number in range(1 << 16)], dtype=np.uint8)


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
        self._signs = GrowingArray(arrays.get(_SIGNS, np.empty((0, words), dtype="<u8")))

    def update(self, vectors: StoredVectors) -> None:
        """Pack the sign bits of the vectors that were added."""
        if len(self._signs) > len(vectors):  # an addition was interrupted
            self._signs = GrowingArray(self._signs.rows[: len(vectors)])
        for block in vectors.blocks(start=len(self._signs)):
            self._signs = self._signs.append(_pack_signs(vectors.rows[block]))

    def is_current(self, vectors: StoredVectors) -> bool:
        """Return whether there are sign bits for exactly these vectors."""
        return len(self._signs) == len(vectors)

    def candidates(self, query: npt.NDArray[np.float32], top_k: int) -> Positions | None:
        """Return the vectors with the smallest Hamming distances; ties keep their order."""
        count = max(_MIN_CANDIDATES, self._rescore * top_k)
        if count >= len(self._signs):
            return None
        return top_k_indices(-_hamming_distances(self._signs.rows, _pack_signs(query[None])), count)

    def select(self, positions: Positions) -> "BinarySearch":
        """Return an instance with the sign bits of some of the vectors."""
        known = positions[positions < len(self._signs)]
        return BinarySearch(self._rescore, self._dimension, {_SIGNS: self._signs.rows[known]})

    def arrays(self) -> Arrays:
        """Return the sign bits."""
        return {_SIGNS: self._signs.rows}


def _pack_signs(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.uint64]:
    """Return (n, ceil(dimension / 64)) words with one bit per element, set if the element is positive."""
    packed = np.packbits(vectors > 0, axis=1)
    padded = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    return padded.view("<u8")


def _hamming_distances(signs: npt.NDArray[np.uint64], query: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    """Return the (n,) number of bits in which each row differs from the query."""
    differing = signs ^ query
    # NumPy 1 has no bitwise_count.
    counts = np.bitwise_count(differing) if hasattr(np, "bitwise_count") else _BIT_COUNTS[differing.view("<u2")]
    distances: npt.NDArray[np.int32] = np.einsum("ij->i", counts.astype(np.int32))
    return distances
