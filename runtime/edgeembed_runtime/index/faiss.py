"""Approximate search with faiss: inverted file (IVF) and HNSW."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.concurrency import ForkGate
from edgeembed_runtime.errors import InputError, MissingExtraError
from edgeembed_runtime.index.candidates import Arrays, Positions
from edgeembed_runtime.index.engine import Engine
from edgeembed_runtime.index.vectors import StoredVectors

_CENTROIDS = "centroids"
# faiss wants at least 39. Twice as many take twice the time and hardly change the centroids.
_TRAINING_VECTORS_PER_LIST = 64
# Elements that are added to a faiss index at a time, 16 MiB: faiss adds many vectors in parallel.
_BLOCK_ELEMENTS = 1 << 22
# A fork waits until no thread is inside faiss: a lock that such a thread holds would stay locked in the child.
_GATE = ForkGate()


class FaissSearch(ABC):
    """Keeps a float32 copy of the vectors in a faiss index, in the same order.

    faiss reads no files: its index is built from the stored vectors and from validated arrays.

    Args:
        engine: The settings.
        dimension: The dimension of the vectors.

    Raises:
        MissingExtraError: If faiss is not installed.
    """

    def __init__(self, engine: Engine, dimension: int) -> None:
        self._engine = engine
        self._dimension = dimension
        self._faiss = _import_faiss()
        self._index: Any = None

    def update(self, vectors: StoredVectors) -> None:
        """Add new vectors to the faiss index, or build it if there is none or it is outdated."""
        # If adding fails, or the process forks while this thread adds, the faiss index is never used again.
        index, self._index = self._index, None
        if len(vectors) == 0:
            return
        if index is None or self._is_outdated(index, vectors):
            index = _GATE.run(self._new_index, vectors)
        for block in vectors.blocks(start=index.ntotal, elements=_BLOCK_ELEMENTS):
            _GATE.run(index.add, vectors.normalized(block))
        self._index = index

    def is_current(self, vectors: StoredVectors) -> bool:
        """Return whether the faiss index holds exactly these vectors."""
        return (0 if self._index is None else int(self._index.ntotal)) == len(vectors)

    def candidates(self, query: npt.NDArray[np.float32], top_k: int) -> Positions | None:
        """Return the vectors that faiss finds, or None if it finds fewer than `top_k`."""
        _, (nearest,) = _GATE.run(self._index.search, query[None], top_k)
        positions: Positions = np.unique(nearest[nearest >= 0])
        return positions if len(positions) == top_k else None

    def select(self, positions: Positions) -> "FaissSearch":  # noqa: ARG002 - the faiss index is built again
        """Return an instance that builds its faiss index again."""
        return type(self)(self._engine, self._dimension)

    def arrays(self) -> Arrays:
        """Return the arrays to save: none."""
        return {}

    def _is_outdated(self, index: Any, vectors: StoredVectors) -> bool:
        return bool(index.ntotal > len(vectors))  # an addition was interrupted

    @abstractmethod
    def _new_index(self, vectors: StoredVectors) -> Any:
        """Return an empty faiss index, trained on the vectors if it needs training."""


class HnswSearch(FaissSearch):
    """Search in an HNSW graph, which is built again when an index is opened and after a removal.

    Source: Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical Navigable
    Small World graphs", 2016.
    """

    def _new_index(self, vectors: StoredVectors) -> Any:  # noqa: ARG002 - HNSW needs no training
        index = self._faiss.IndexHNSWFlat(self._dimension, self._engine.m, self._faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efSearch = self._engine.ef_search
        return index


class IvfSearch(FaissSearch):
    """Search in the inverted lists whose centroids are nearest to the query.

    The centroids are trained once, and again when the number of documents calls for more than twice as many lists.

    Args:
        engine: The settings.
        dimension: The dimension of the vectors.
        arrays: The saved "centroids", (lists, dimension) float32, if there are any.

    Raises:
        InputError: If a centroid is not finite.
        MissingExtraError: If faiss is not installed.
    """

    def __init__(self, engine: Engine, dimension: int, arrays: Arrays) -> None:
        super().__init__(engine, dimension)
        self._centroids: npt.NDArray[np.float32] = arrays.get(_CENTROIDS, np.empty((0, dimension), dtype="<f4"))
        if not np.isfinite(self._centroids).all():
            raise InputError("a centroid of the index is not finite, expected finite numbers; build the index again")

    def select(self, positions: Positions) -> "IvfSearch":  # noqa: ARG002 - the lists are filled again
        """Return an instance with the same centroids."""
        return IvfSearch(self._engine, self._dimension, self.arrays())

    def arrays(self) -> Arrays:
        """Return the centroids."""
        return {_CENTROIDS: self._centroids}

    def _is_outdated(self, index: Any, vectors: StoredVectors) -> bool:
        return super()._is_outdated(index, vectors) or self._needs_training(vectors)

    def _needs_training(self, vectors: StoredVectors) -> bool:
        return self._list_count(len(vectors)) > 2 * len(self._centroids)

    def _list_count(self, documents: int) -> int:
        return min(documents, self._engine.nlist or math.isqrt(documents))

    def _new_index(self, vectors: StoredVectors) -> Any:
        if self._needs_training(vectors):
            self._centroids = self._train(vectors)
        quantizer = self._faiss.IndexFlatIP(self._dimension)
        quantizer.add(self._centroids)
        index = self._ivf_index(quantizer, len(self._centroids))
        index.is_trained = True
        index.nprobe = self._engine.nprobe
        return index

    def _train(self, vectors: StoredVectors) -> npt.NDArray[np.float32]:
        """Return k-means centroids, (lists, dimension)."""
        lists = self._list_count(len(vectors))
        samples = min(len(vectors), lists * _TRAINING_VECTORS_PER_LIST)
        positions = np.linspace(0, len(vectors) - 1, samples).astype(np.intp)
        quantizer = self._faiss.IndexFlatIP(self._dimension)
        index = self._ivf_index(quantizer, lists)
        index.cp.min_points_per_centroid = 1  # otherwise faiss warns on stderr about few documents
        index.train(vectors.normalized(positions))
        centroids: npt.NDArray[np.float32] = quantizer.reconstruct_n(0, quantizer.ntotal)
        return centroids

    def _ivf_index(self, quantizer: Any, lists: int) -> Any:
        return self._faiss.IndexIVFFlat(quantizer, self._dimension, lists, self._faiss.METRIC_INNER_PRODUCT)


def _import_faiss() -> Any:
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise MissingExtraError("faiss", "faiss", "edgeembed-runtime") from error
    return faiss
