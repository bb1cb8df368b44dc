"""What the three finders that faiss does the work of have in common."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import MissingExtraError
from edgeembed_runtime.index.finders import Arrays, Positions
from edgeembed_runtime.index.settings import Engine
from edgeembed_runtime.index.stored_vectors import StoredVectors

# What faiss gets at a time, 16 MiB: it works on many vectors at once, on all cores.
BLOCK_NUMBERS = 1 << 22


class FaissFinder(ABC):
    """Keeps the vectors in a structure of faiss, as float32 and in the order in which they are stored.

    faiss parses nothing from disk: a structure is made from vectors, and from arrays that were checked.

    Args:
        engine: Its settings.
        dimension: The length of a vector.
        arrays: What such a finder kept.

    Raises:
        MissingExtraError: If faiss is not installed.
    """

    def __init__(self, engine: Engine, dimension: int, arrays: Arrays) -> None:
        self._engine = engine
        self._dimension = dimension
        self._arrays = arrays
        self._faiss = _load_faiss()
        self._structure: Any = None

    def refresh(self, vectors: StoredVectors) -> None:
        """Bring the structure to the vectors that there are."""
        if len(vectors) == 0:
            return
        if self._structure is None or self._is_outdated(vectors):
            self._structure = self._new_structure(vectors)
        for block in vectors.blocks(start=self._structure.ntotal, numbers=BLOCK_NUMBERS):
            self._structure.add(vectors.units(block))

    def candidates(self, vectors: StoredVectors, query: npt.NDArray[np.float32], k: int) -> Positions | None:
        """Give what the structure finds, or None if it finds fewer than `k`."""
        self.refresh(vectors)
        _, (found,) = self._structure.search(query[None], k)
        positions: Positions = np.unique(found[found >= 0])
        return positions if len(positions) == k else None

    def kept(self, positions: Positions) -> "FaissFinder":  # noqa: ARG002 - a structure is made again
        """Give a finder that makes its structure again."""
        return type(self)(self._engine, self._dimension, {})

    def arrays(self) -> Arrays:
        """Give what is worth keeping on disk: nothing."""
        return {}

    def _is_outdated(self, vectors: StoredVectors) -> bool:
        return bool(self._structure.ntotal > len(vectors))  # an addition was interrupted

    @abstractmethod
    def _new_structure(self, vectors: StoredVectors) -> Any:
        """Give a structure of none of the vectors, or of all."""


def _load_faiss() -> Any:
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise MissingExtraError("faiss", "faiss", "edgeembed-runtime") from error
    return faiss
