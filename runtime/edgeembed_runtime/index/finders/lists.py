"""Vectors in lists of those near to each other, of which a search reads a few."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.engine import Engine
from edgeembed_runtime.index.finders import Arrays, Positions
from edgeembed_runtime.index.finders.structure import FaissFinder
from edgeembed_runtime.index.stored_vectors import StoredVectors

_CENTROIDS = "centroids"
# faiss wants at least 39; twice as many cost twice the time and hardly move the centroids.
_SAMPLES_PER_LIST = 64


class ListFinder(FaissFinder):
    """Gives the nearest vectors of the lists that are nearest to the query.

    The middles of the lists are learned once, and again when the documents became so many that there should be more
    than twice as many lists.

    Args:
        engine: Its settings.
        dimension: The length of a vector.
        arrays: "centroids": (lists, dimension) float32, if they are known.

    Raises:
        InputError: If a centroid is not finite.
        MissingExtraError: If faiss is not installed.
    """

    def __init__(self, engine: Engine, dimension: int, arrays: Arrays) -> None:
        super().__init__(engine, dimension)
        self._centroids: npt.NDArray[np.float32] = arrays.get(_CENTROIDS, np.empty((0, dimension), dtype="<f4"))
        if not np.isfinite(self._centroids).all():
            raise InputError("a centroid of the index is not finite, expected numbers only; build the index again")

    def kept(self, positions: Positions) -> "ListFinder":  # noqa: ARG002 - the lists are made again
        """Give a finder that keeps the centroids."""
        return ListFinder(self._engine, self._dimension, self.arrays())

    def arrays(self) -> Arrays:
        """Give the centroids."""
        return {_CENTROIDS: self._centroids}

    def _is_outdated(self, structure: Any, vectors: StoredVectors) -> bool:
        return super()._is_outdated(structure, vectors) or self._wanted(len(vectors)) > 2 * len(self._centroids)

    def _wanted(self, count: int) -> int:
        return min(count, self._engine.nlist or math.isqrt(count))

    def _new_structure(self, vectors: StoredVectors) -> Any:
        if self._wanted(len(vectors)) > 2 * len(self._centroids):
            self._centroids = self._learned(vectors)
        middles = self._faiss.IndexFlatIP(self._dimension)
        middles.add(self._centroids)
        structure = self._over(middles, len(self._centroids))
        structure.is_trained = True
        structure.nprobe = self._engine.nprobe
        return structure

    def _learned(self, vectors: StoredVectors) -> npt.NDArray[np.float32]:
        lists = self._wanted(len(vectors))
        samples = min(len(vectors), lists * _SAMPLES_PER_LIST)
        spread = np.linspace(0, len(vectors) - 1, samples).astype(np.intp)
        middles = self._faiss.IndexFlatIP(self._dimension)
        structure = self._over(middles, lists)
        structure.cp.min_points_per_centroid = 1  # or faiss writes to stderr where there are few documents
        structure.train(vectors.units(spread))
        learned: npt.NDArray[np.float32] = middles.reconstruct_n(0, middles.ntotal)
        return learned

    def _over(self, middles: Any, lists: int) -> Any:
        return self._faiss.IndexIVFFlat(middles, self._dimension, lists, self._faiss.METRIC_INNER_PRODUCT)
