"""Candidates by the signs of a vector's numbers: a bit each."""

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.index.finders import Arrays, Positions
from edgeembed_runtime.index.growing import GrowingRows
from edgeembed_runtime.index.stored_vectors import StoredVectors
from edgeembed_runtime.similarity import top_k_indices

_SIGNS = "signs"
# Scoring as few as these takes no time worth saving.
_FEWEST = 100
_ONES = np.array([number.bit_count() for number in range(1 << 16)], dtype=np.uint8)


class SignFinder:
    """Gives the vectors in whose signs the fewest differ from the query's.

    Args:
        rescore: How many candidates there are for each hit that is asked for.
        dimension: The length of a vector.
        arrays: "signs": (n, dimension / 64, rounded up) uint64, if they are known.
    """

    def __init__(self, rescore: int, dimension: int, arrays: Arrays) -> None:
        self._rescore = rescore
        self._dimension = dimension
        words = (dimension + 63) // 64
        self._signs = GrowingRows(arrays.get(_SIGNS, np.empty((0, words), dtype="<u8")))

    def refresh(self, vectors: StoredVectors) -> None:
        """Take the signs of the vectors that were added."""
        if len(self._signs) > len(vectors):  # an addition was interrupted
            self._signs = GrowingRows(self._signs.rows[: len(vectors)])
        for block in vectors.blocks(start=len(self._signs)):
            self._signs = self._signs.followed_by(_signs(vectors.rows[block]))

    def candidates(self, vectors: StoredVectors, query: npt.NDArray[np.float32], k: int) -> Positions | None:
        """Give those of the fewest differing signs; of equals the earlier."""
        self.refresh(vectors)
        count = max(_FEWEST, self._rescore * k)
        return (
            top_k_indices(-_differing(self._signs.rows, _signs(query[None])), count) if count < len(vectors) else None
        )

    def kept(self, positions: Positions) -> "SignFinder":
        """Give the finder of the vectors that are left."""
        known = positions[positions < len(self._signs)]
        return SignFinder(self._rescore, self._dimension, {_SIGNS: self._signs.rows[known]})

    def arrays(self) -> Arrays:
        """Give the signs."""
        return {_SIGNS: self._signs.rows}


def _signs(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.uint64]:
    """Give (n, dimension / 64, rounded up) words of a bit for each number, set if it is positive."""
    packed = np.packbits(rows > 0, axis=1)
    filled = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    return filled.view("<u8")


def _differing(signs: npt.NDArray[np.uint64], query: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    differing = signs ^ query
    # numpy 1 cannot count bits.
    ones = np.bitwise_count(differing) if hasattr(np, "bitwise_count") else _ONES[differing.view("<u2")]
    sums: npt.NDArray[np.int32] = np.einsum("ij->i", ones.astype(np.int32))
    return sums
