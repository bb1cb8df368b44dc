"""The documents that a search ranks, and the ranking that it returns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.documents import Hit
from edgeembed_runtime.index.candidates import Positions
from edgeembed_runtime.index.filters import Predicate, matching_documents
from edgeembed_runtime.index.rows import IndexRows


@dataclass(frozen=True)
class Selection:
    """The documents that match a filter, at one moment.

    Attributes:
        rows: The index at that moment.
        positions: The rows of these documents, ascending.
    """

    rows: IndexRows
    positions: Positions

    @classmethod
    def of(cls, rows: IndexRows, predicate: Predicate) -> "Selection":
        """Return the documents whose metadata matches.

        Args:
            rows: The index.
            predicate: Tells from its metadata whether a document matches.
        """
        matches = matching_documents(predicate, rows.table.metadata(), len(rows.table))
        return cls(rows, np.flatnonzero(matches[rows.documents]))


@dataclass(frozen=True)
class Ranking:
    """Documents, best first; ties are in the order of the documents.

    Attributes:
        rows: The index at the moment of the search.
        positions: The row of the best passage of each document.
        scores: The score of each of these passages.
    """

    rows: IndexRows
    positions: Positions
    scores: npt.NDArray[np.floating[Any]]

    @classmethod
    def of_best_passages(
        cls, rows: IndexRows, positions: Positions | None, scores: npt.NDArray[np.float32], top_k: int | None
    ) -> "Ranking":
        """Return the ranking of documents by the score of their best passage.

        Args:
            rows: The index.
            positions: The rows that were scored; None means all.
            scores: The score of each of them, without NaN.
            top_k: The maximum number of documents; None means all.
        """
        documents = rows.documents if positions is None else rows.documents[positions]
        best = _best_per_document(scores, documents, top_k)
        return cls(rows, best if positions is None else positions[best], scores[best])

    def hits(self, min_score: float | None = None) -> list[Hit]:
        """Return the documents as hits, without those that score less than `min_score`."""
        if min_score is None:
            return self.rows.hits(self.positions, self.scores)
        is_kept = self.scores.astype(np.float64) >= min_score
        return self.rows.hits(self.positions[is_kept], self.scores[is_kept])


def _best_per_document(
    scores: npt.NDArray[np.float32], documents: npt.NDArray[np.int32], top_k: int | None
) -> Positions:
    """Return the positions of each document's best score, best first; ties are in the order of the documents.

    Args:
        scores: (n,), without NaN.
        documents: (n,) the document that each score belongs to.
        top_k: The maximum number of documents; None means all.
    """
    count = len(scores) if top_k is None else top_k
    while True:
        chosen = np.arange(len(scores))
        if count < len(scores):
            chosen = np.flatnonzero(scores >= np.partition(scores, -count)[-count])
        order = chosen[np.lexsort((documents[chosen], -scores[chosen]))]
        _, first = np.unique(documents[order], return_index=True)
        best: Positions = order[np.sort(first)][:top_k]
        if count >= len(scores) or len(best) == top_k:
            return best
        count *= 4  # some documents have several of the best scores
