"""The documents of an index and their candidate search, shared by threads and kept usable after a fork."""

import os
import sys
import weakref
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.concurrency import ReadWriteLock
from edgeembed_runtime.documents import DocumentId
from edgeembed_runtime.index.bm25 import BM25
from edgeembed_runtime.index.candidates import Arrays, CandidateSearch, Positions
from edgeembed_runtime.index.npy import MappedArrays
from edgeembed_runtime.index.rows import EncodedPassages, IndexRows
from edgeembed_runtime.index.table import DocumentBatch
from edgeembed_runtime.index.vectors import GrowingArray


class _Content(NamedTuple):
    rows: IndexRows
    search: CandidateSearch | None


class _Keywords(NamedTuple):
    passages: GrowingArray
    bm25: BM25


class Collection:
    """Documents that threads search in parallel and change one at a time.

    Args:
        rows: The documents.
        search: The candidate search; None if every search compares all vectors.
        mapped: The files that arrays are mapped from.

    Attributes:
        mapped: The same.
    """

    def __init__(self, rows: IndexRows, search: CandidateSearch | None, mapped: MappedArrays) -> None:
        self._content = _Content(rows, search)
        self.mapped = mapped
        self._lock = ReadWriteLock()
        self._keywords: _Keywords | None = None
        self._keywords_lock = Lock()
        _LIVE.add(self)
        self._update_search()

    @property
    def rows(self) -> IndexRows:
        """The documents at this moment."""
        return self._content.rows

    @property
    def is_exact(self) -> bool:
        """Whether every search compares all vectors."""
        return self._content.search is None

    def snapshot(self) -> tuple[IndexRows, Arrays]:
        """Return the documents and the arrays of the candidate search at this moment.

        Raises:
            InputError: If a mapped file was truncated.
        """
        with self._lock.write():
            self.mapped.check()
            self._update_search()
            rows, search = self._content
            return rows, {} if search is None else search.arrays()

    def append(self, batch: DocumentBatch, passages: EncodedPassages) -> Sequence[DocumentId]:
        """Add all of the documents, or none if that fails, and return their ids.

        Raises:
            InputError: If an id is taken, or a mapped file was truncated.
        """
        with self._lock.write():
            self.mapped.check()
            self._update_search()  # a failed addition may have left vectors in it
            rows, search = self._content
            appended = rows.append(batch, passages)
            if search is not None:
                search.update(appended.vectors)
            self._content = _Content(appended, search)
        return appended.table.ids(start=len(rows.table))

    def update(self, batch: DocumentBatch, passages: EncodedPassages | None) -> None:
        """Replace texts or metadata, or both, of all of the documents, or of none if one does not exist.

        Args:
            batch: The ids of the documents, their new metadata, if there is any, and their new texts, if `passages` is
                not None.
            passages: The passages of the new texts; None keeps the texts.

        Raises:
            InputError: If there is no document with one of the ids, or a mapped file was truncated.
        """
        with self._lock.write():
            self.mapped.check()
            rows, search = self._content
            documents = rows.table.find(batch.ids or [])
            if batch.metadata is not None:
                rows = rows.update_metadata(documents, batch.metadata)
            if passages is not None and len(documents):
                search = search and search.select(rows.rows_without(documents))
                rows = rows.update_text(documents, batch.texts, passages)
            self._content = _Content(rows, search)

    def remove(self, ids: Sequence[DocumentId]) -> None:
        """Remove all of the documents, or none if one does not exist.

        Raises:
            InputError: If there is no document with one of the ids, or a mapped file was truncated.
        """
        with self._lock.write():
            self.mapped.check()
            rows, search = self._content
            documents = rows.table.find(ids)
            if len(documents):
                search = search and search.select(rows.rows_without(documents))
                self._content = _Content(rows.remove(documents), search)

    def checked_rows(self) -> IndexRows:
        """Return the documents at this moment, to be read.

        Raises:
            InputError: If a mapped file was truncated.
        """
        self.mapped.check()
        return self._content.rows

    def candidates(self, query: npt.NDArray[np.float32], count: int) -> tuple[IndexRows, Positions | None]:
        """Return the documents at this moment, and the rows to compare with a query; None means all.

        Args:
            query: (dimension,) float32, L2-normalized.
            count: The number of rows among which the candidate search finds the best ones.

        Raises:
            InputError: If a mapped file was truncated.
        """
        self.mapped.check()
        while True:
            rows, search = self._content
            if search is None or count >= len(rows.vectors):
                return rows, None
            with self._lock.read():
                rows, search = self._content
                if search is not None and search.is_current(rows.vectors):
                    return rows, search.candidates(query, count) if count < len(rows.vectors) else None
            with self._lock.write():
                self._update_search()

    def bm25(self, rows: IndexRows) -> BM25:
        """Return the BM25 scores of all passages, which are computed on the first call and after a change of texts.

        Args:
            rows: The documents at some moment.

        Raises:
            MissingExtraError: If bm25s is not installed.
        """
        with self._keywords_lock:
            # Every change of texts makes a new array of passages.
            if self._keywords is None or self._keywords.passages is not rows.passages:
                self._keywords = None  # frees the memory before more is needed
                self._keywords = _Keywords(rows.passages, BM25(rows.passage_texts()))
            return self._keywords.bm25

    def _update_search(self) -> None:
        rows, search = self._content
        if search is not None:
            search.update(rows.vectors)

    def _replace_locks(self) -> None:
        self._lock = ReadWriteLock()
        self._keywords_lock = Lock()


_LIVE: weakref.WeakSet[Collection] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    """Replace locks that threads of the parent may hold; faiss must not wait for threads that do not exist here."""
    set_threads = getattr(sys.modules.get("faiss"), "omp_set_num_threads", None)
    if set_threads is not None:
        set_threads(1)
    for collection in list(_LIVE):
        collection._replace_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
