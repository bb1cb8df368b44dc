"""Vectors in a graph of neighbours, which a search follows towards the query."""

from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.index.engine import Engine
from edgeembed_runtime.index.finders import Arrays
from edgeembed_runtime.index.finders.structure import BLOCK_NUMBERS, FaissFinder
from edgeembed_runtime.index.stored_vectors import StoredVectors

_NEIGHBOURS = "neighbours"


class GraphFinder(FaissFinder):
    """Gives what the graph leads to. A graph cannot forget: after a removal it is made again.

    Args:
        engine: Its settings.
        dimension: The length of a vector.
        arrays: "neighbours": (n,) int32, if they are known: for each vector and each of its levels the positions of
            its neighbours, -1 where it has none. How many levels a vector has follows from its position.

    Raises:
        MissingExtraError: If faiss is not installed.
    """

    def __init__(self, engine: Engine, dimension: int, arrays: Arrays | None = None) -> None:
        super().__init__(engine, dimension)
        self._arrays = arrays or {}

    def arrays(self) -> Arrays:
        """Give the neighbours: making them takes longest of all."""
        if self._structure is None:
            return {}
        return {_NEIGHBOURS: self._faiss.vector_to_array(self._structure.hnsw.neighbors)}

    def _new_structure(self, vectors: StoredVectors) -> Any:
        neighbours, self._arrays = self._arrays.get(_NEIGHBOURS), {}
        laid_out = None if neighbours is None else self._laid_out(vectors, neighbours)
        return laid_out or self._empty()

    def _empty(self) -> Any:
        structure = self._faiss.IndexHNSWFlat(self._dimension, self._engine.m, self._faiss.METRIC_INNER_PRODUCT)
        structure.hnsw.efSearch = self._engine.ef_search
        return structure

    def _laid_out(self, vectors: StoredVectors, neighbours: npt.NDArray[np.int32]) -> Any | None:
        """Give the structure of these neighbours, or None if they are not the neighbours of these vectors."""
        structure, to_array = self._empty(), self._faiss.vector_to_array
        hnsw = structure.hnsw
        hnsw.prepare_level_tab(len(vectors), False)
        levels = to_array(hnsw.levels)
        if not _is_graph(neighbours, levels, to_array(hnsw.offsets), to_array(hnsw.cum_nneighbor_per_level)):
            return None
        self._faiss.rev_swig_ptr(hnsw.neighbors.data(), hnsw.neighbors.size())[:] = neighbours
        hnsw.entry_point, hnsw.max_level = int(levels.argmax()), int(levels.max()) - 1
        flat = self._faiss.downcast_index(structure.storage)
        for block in vectors.blocks(numbers=BLOCK_NUMBERS):
            flat.add(vectors.units(block))
        structure.ntotal = len(vectors)
        return structure


def _is_graph(
    neighbours: npt.NDArray[np.int32],
    levels: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.uint64],
    widths: npt.NDArray[np.int32],
) -> bool:
    """Whether every neighbour is a vector that has the level too: faiss follows them without looking.

    Args:
        neighbours: (n,), what is checked.
        levels: (vectors,), how many levels each has.
        offsets: (vectors + 1,), where the neighbours of each begin.
        widths: (levels + 1,), where those of each level begin behind that.
    """
    if neighbours.shape != (offsets[-1],) or neighbours.min() < -1 or neighbours.max() >= len(levels):
        return False
    for level in range(1, int(levels.max())):
        starts = offsets[:-1][levels > level].astype(np.intp)
        found = neighbours[starts[:, None] + np.arange(widths[level], widths[level + 1])]
        if (levels[found[found >= 0]] <= level).any():
            return False
    return True
