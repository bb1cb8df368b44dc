"""What narrows a search down to candidates, so that only their cosines are computed."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.engine import Engine, IndexPrecision
from edgeembed_runtime.index.stored_vectors import StoredVectors

Positions = npt.NDArray[np.intp]
Arrays = Mapping[str, npt.NDArray[Any]]


class Finder(Protocol):
    """Knows which vectors may be near to a query."""

    def refresh(self, vectors: StoredVectors) -> None:
        """Take in the vectors that were added since the last time, which a search would do otherwise."""

    def candidates(self, vectors: StoredVectors, query: npt.NDArray[np.float32], k: int) -> Positions | None:
        """Give the positions of candidates for the `k` nearest vectors, each once; None stands for all vectors."""

    def kept(self, positions: Positions) -> "Finder":
        """Give a finder for what a removal left."""

    def arrays(self) -> Arrays:
        """Give what is worth keeping on disk, so that opening an index need not compute it again."""


def new_finder(
    engine: Engine, precision: IndexPrecision, dimension: int, arrays: Arrays | None = None
) -> Finder | None:
    """Give the finder of an engine; None compares with every vector.

    Args:
        engine: The engine.
        precision: That of the vectors.
        dimension: Their length.
        arrays: What such a finder kept, if it did; it is checked.

    Raises:
        InputError: If the engine does not search vectors of this precision, or an array is none that it keeps.
        MissingExtraError: If the engine is one of faiss, and that is not installed.
    """
    kept = {} if arrays is None else arrays
    if precision == "binary":
        if engine.name != "numpy":
            raise InputError(f"the engine is {engine.name}, expected numpy for the precision binary; choose either")
        from edgeembed_runtime.index.finders.signs import SignFinder

        return SignFinder(engine.rescore, dimension, kept)
    if engine.name == "numpy":
        return None
    from edgeembed_runtime.index.finders.flat import FlatFinder
    from edgeembed_runtime.index.finders.graph import GraphFinder
    from edgeembed_runtime.index.finders.lists import ListFinder

    if engine.name == "faiss-flat":
        return FlatFinder(engine, dimension)
    return (ListFinder if engine.name == "faiss-ivf" else GraphFinder)(engine, dimension, kept)
