"""The interface of approximate search: candidates for the nearest vectors, whose exact similarity is computed later."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.engine import Engine, IndexPrecision
from edgeembed_runtime.index.vectors import StoredVectors

Positions = npt.NDArray[np.intp]
Arrays = Mapping[str, npt.NDArray[Any]]


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
        from edgeembed_runtime.index.binary import BinarySearch

        return BinarySearch(engine.rescore, dimension, saved)
    if engine.name == "numpy":
        return None
    from edgeembed_runtime.index.faiss import HnswSearch, IvfSearch

    return IvfSearch(engine, dimension, saved) if engine.name == "faiss-ivf" else HnswSearch(engine, dimension)
