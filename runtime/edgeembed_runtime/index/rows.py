"""The documents of an index and the vectors of their passages."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.documents import Hit, Metadata, Passage
from edgeembed_runtime.index.candidates import Positions
from edgeembed_runtime.index.table import DocumentBatch, DocumentTable
from edgeembed_runtime.index.vectors import GrowingArray, StoredVectors

# The column of the array of passages with the position of the document.
_DOCUMENT = 0  # the other two are start and end
PASSAGE_DTYPE = "<i4"


class EncodedPassages(NamedTuple):
    """The embeddings of the passages of some documents.

    Attributes:
        embeddings: (passages, dimension), of any norm, finite.
        spans: (passages, 3) int32: the position of the document among these documents, start and end in characters.
            Every document has at least one passage.
    """

    embeddings: npt.NDArray[Any]
    spans: npt.NDArray[np.int32]


@dataclass(frozen=True)
class IndexRows:
    """The documents of an index, and one row per passage, at one moment. A document has one passage or more.

    Attributes:
        table: The documents.
        vectors: (rows, dimension): the embedding of each passage.
        passages: (rows, 3) int32: the position of the passage's document, and its start and end in characters.
    """

    table: DocumentTable
    vectors: StoredVectors
    passages: GrowingArray

    @classmethod
    def empty(cls, vectors: StoredVectors, next_id: int = 0) -> "IndexRows":
        """Return rows without documents.

        Args:
            vectors: No vectors, in the precision of the index.
            next_id: The integer from which documents without ids are numbered.
        """
        table = DocumentTable.empty().with_next_id(next_id)
        return cls(table, vectors, GrowingArray(np.empty((0, 3), dtype=PASSAGE_DTYPE)))

    @property
    def documents(self) -> npt.NDArray[np.int32]:
        """The position of each row's document, (rows,)."""
        positions: npt.NDArray[np.int32] = self.passages.rows[:, _DOCUMENT]
        return positions

    def passage_texts(self) -> Iterator[str]:
        """Yield the text of each row's passage."""
        texts = list(self.table.texts())
        for document, start, end in self.passages.rows.tolist():
            yield texts[document][start:end]

    def append(self, batch: DocumentBatch, passages: EncodedPassages) -> "IndexRows":
        """Return these documents and more at the end.

        Raises:
            InputError: If an id is taken, or there are no integers left to choose as ids.
        """
        table = self.table.append(batch)
        spans = passages.spans + np.array([len(self.table), 0, 0], dtype=PASSAGE_DTYPE)
        return IndexRows(table, self.vectors.append(passages.embeddings), self.passages.append(spans))

    def update_text(self, documents: Positions, texts: list[str], passages: EncodedPassages) -> "IndexRows":
        """Return rows in which some documents have another text. The rows of these documents are at the end."""
        kept = self.rows_without(documents)
        spans = passages.spans.copy()
        spans[:, _DOCUMENT] = documents[spans[:, _DOCUMENT]]
        return IndexRows(
            self.table.replace(documents, texts, None),
            self.vectors.select(kept, spare=len(spans)).append(passages.embeddings),
            self.passages.select(kept, spare=len(spans)).append(spans),
        )

    def update_metadata(self, documents: Positions, metadata: list[Metadata]) -> "IndexRows":
        """Return rows in which some documents have other metadata."""
        return replace(self, table=self.table.replace(documents, None, metadata))

    def remove(self, documents: Positions) -> "IndexRows":
        """Return a copy of the rows without some documents."""
        kept = self.rows_without(documents)
        is_kept = np.ones(len(self.table), dtype=np.bool_)
        is_kept[documents] = False
        passages = self.passages.select(kept)
        passages.rows[:, _DOCUMENT] = (np.cumsum(is_kept) - 1)[passages.rows[:, _DOCUMENT]]
        return IndexRows(self.table.select(np.flatnonzero(is_kept)), self.vectors.select(kept), passages)

    def rows_without(self, documents: Positions) -> Positions:
        """Return the positions of the rows that do not belong to some documents."""
        is_removed = np.zeros(len(self.table), dtype=np.bool_)
        is_removed[documents] = True
        return np.flatnonzero(~is_removed[self.documents])

    def with_other_passages(self, rows: Positions) -> Positions:
        """Return some rows and all other rows of the same documents."""
        if len(self.vectors) == len(self.table):
            return rows
        is_chosen = np.zeros(len(self.table), dtype=np.bool_)
        is_chosen[self.documents[rows]] = True
        return np.flatnonzero(is_chosen[self.documents])

    def hits(self, rows: Positions, scores: npt.NDArray[np.floating[Any]]) -> list[Hit]:
        """Return the documents of some rows as hits, with a score for each."""
        spans = self.passages.rows[rows].tolist()
        return [
            self._hit(document, start, end, score)
            for (document, start, end), score in zip(spans, scores.tolist(), strict=True)
        ]

    def _hit(self, position: int, start: int, end: int, score: float) -> Hit:
        document = self.table[position]
        is_whole = (start, end) == (0, len(document.text))
        passage = None if is_whole else Passage(start, end, document.text[start:end])
        return Hit(document.id, score, document.text, document.metadata, passage)
