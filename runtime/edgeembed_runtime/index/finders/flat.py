"""All vectors, compared by faiss."""

from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.index.finders import Positions
from edgeembed_runtime.index.finders.structure import FaissFinder
from edgeembed_runtime.index.stored_vectors import StoredVectors

_FIRST_MORE = 16


class FlatFinder(FaissFinder):
    """Gives the nearest vectors, and all that are as near within what rounding may hide."""

    def candidates(self, vectors: StoredVectors, query: npt.NDArray[np.float32], k: int) -> Positions | None:
        """Give at least `k`; None if too many are equally near to be worth choosing from."""
        self.refresh(vectors)
        # Two sums of as many products each may differ by this much, whatever the order of their terms.
        hidden = 2 * (self._dimension + 8) * float(np.finfo(np.float32).eps)
        count = k + _FIRST_MORE
        while count < len(vectors):
            (scores,), (found,) = self._nearest(query, count)
            if scores[-1] < scores[k - 1] - hidden:
                positions: Positions = np.sort(found)
                return positions
            count *= 4
        return None

    def _new_structure(self, vectors: StoredVectors) -> Any:  # noqa: ARG002 - they are added behind
        return self._faiss.IndexFlatIP(self._dimension)
