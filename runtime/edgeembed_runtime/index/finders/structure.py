"""What the three finders that faiss does the work of have in common."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import MissingExtraError
from edgeembed_runtime.forking import ForkGate
from edgeembed_runtime.index.engine import Engine
from edgeembed_runtime.index.finders import Arrays, Positions
from edgeembed_runtime.index.stored_vectors import StoredVectors

# What faiss gets at a time, 16 MiB: it works on many vectors at once, on all cores.
BLOCK_NUMBERS = 1 << 22
# In a child that was forked while another thread was within faiss, a lock of its threads could stay locked.
_GATE = ForkGate()


class FaissFinder(ABC):
    """Keeps the vectors in a structure of faiss, as float32 and in the order in which they are stored.

    faiss parses nothing from disk: a structure is made from vectors, and from arrays that were checked.

    Args:
        engine: Its settings.
        dimension: The length of a vector.

    Raises:
        MissingExtraError: If faiss is not installed.
    """

    def __init__(self, engine: Engine, dimension: int) -> None:
        self._engine = engine
        self._dimension = dimension
        self._faiss = _load_faiss()
        self._structure: Any = None

    def refresh(self, vectors: StoredVectors) -> None:
        """Bring the structure to the vectors that there are."""
        # Nobody uses it again if adding fails, or if the process forks while this thread adds.
        structure, self._structure = self._structure, None
        if len(vectors) == 0:
            return
        if structure is None or self._is_outdated(structure, vectors):
            structure = _GATE.run(self._new_structure, vectors)
        for block in vectors.blocks(start=structure.ntotal, numbers=BLOCK_NUMBERS):
            _GATE.run(structure.add, vectors.units(block))
        self._structure = structure

    def candidates(self, vectors: StoredVectors, query: npt.NDArray[np.float32], k: int) -> Positions | None:
        """Give what the structure finds, or None if it finds fewer than `k`."""
        self.refresh(vectors)
        _, (found,) = self._nearest(query, k)
        positions: Positions = np.unique(found[found >= 0])
        return positions if len(positions) == k else None

    def kept(self, positions: Positions) -> "FaissFinder":  # noqa: ARG002 - a structure is made again
        """Give a finder that makes its structure again."""
        return type(self)(self._engine, self._dimension)

    def arrays(self) -> Arrays:
        """Give what is worth keeping on disk: nothing."""
        return {}

    def _nearest(self, query: npt.NDArray[np.float32], k: int) -> Any:
        """Give the scores and the positions of the nearest, (1, k) each."""
        return _GATE.run(self._structure.search, query[None], k)

    def _is_outdated(self, structure: Any, vectors: StoredVectors) -> bool:
        return bool(structure.ntotal > len(vectors))  # an addition was interrupted

    @abstractmethod
    def _new_structure(self, vectors: StoredVectors) -> Any:
        """Give a structure of none of the vectors, or of all."""


def _load_faiss() -> Any:
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise MissingExtraError("faiss", "faiss", "edgeembed-runtime") from error
    return faiss
