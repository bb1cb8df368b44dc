"""The documents of an index and their candidate search, shared by threads and kept usable after a fork."""

import os
import sys
import weakref
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.index.candidates import Arrays, CandidateSearch, Positions
from edgeembed_runtime.index.npy import MappedArrays
from edgeembed_runtime.index.read_write_lock import ReadWriteLock
from edgeembed_runtime.index.rows import IndexRows


class _Content(NamedTuple):
    rows: IndexRows
    search: CandidateSearch | None


class Collection:
    """Documents that threads search in parallel and change one at a time.

    Args:
        rows: The documents.
        search: The candidate search; None if every search compares all vectors.
        mapped: The files that arrays are mapped from.
    """

    def __init__(self, rows: IndexRows, search: CandidateSearch | None, mapped: MappedArrays) -> None:
        self._content = _Content(rows, search)
        self._mapped = mapped
        self._lock = ReadWriteLock()
        _LIVE.add(self)
        self._update_search()

    @property
    def rows(self) -> IndexRows:
        """The documents at this moment."""
        return self._content.rows

    def snapshot(self) -> tuple[IndexRows, Arrays]:
        """Return the documents and the arrays of the candidate search at this moment.

        Raises:
            InputError: If a mapped file was truncated.
        """
        with self._lock.write():
            self._mapped.check()
            self._update_search()
            rows, search = self._content
            return rows, {} if search is None else search.arrays()

    def append(self, texts: list[str], vectors: npt.NDArray[np.float32]) -> list[int]:
        """Add all of the documents, or none if that fails, and return their ids.

        Args:
            texts: The documents.
            vectors: (documents, dimension) float32, L2-normalized or zero.

        Raises:
            InputError: If a mapped file was truncated.
        """
        with self._lock.write():
            self._mapped.check()
            self._update_search()  # a failed addition may have left vectors in it
            rows, search = self._content
            appended = rows.append(texts, vectors)
            if search is not None:
                search.update(appended.vectors)
            self._content = _Content(appended, search)
        return list(range(rows.next_id, appended.next_id))

    def remove(self, ids: set[int]) -> None:
        """Remove all of the documents, or none if one does not exist.

        Raises:
            InputError: If there is no document with one of the ids, or a mapped file was truncated.
        """
        with self._lock.write():
            self._mapped.check()
            rows, search = self._content
            positions = rows.positions_without(ids)
            self._content = _Content(rows.select(positions), search and search.select(positions))

    def candidates(self, query: npt.NDArray[np.float32], top_k: int | None) -> tuple[IndexRows, Positions | None]:
        """Return the documents at this moment, and the positions of those to compare with a query; None means all.

        Args:
            query: (dimension,) float32, L2-normalized.
            top_k: The number of hits; None means all documents.

        Raises:
            InputError: If a mapped file was truncated.
        """
        self._mapped.check()
        while True:
            rows, search = self._content
            if search is None or top_k is None or top_k >= len(rows):
                return rows, None
            with self._lock.read():
                rows, search = self._content
                if search is not None and search.is_current(rows.vectors):
                    return rows, search.candidates(query, top_k) if top_k < len(rows) else None
            with self._lock.write():
                self._update_search()

    def _update_search(self) -> None:
        rows, search = self._content
        if search is not None:
            search.update(rows.vectors)

    def _replace_lock(self) -> None:
        self._lock = ReadWriteLock()


_LIVE: weakref.WeakSet[Collection] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    """Replace locks that threads of the parent may hold; faiss must not wait for threads that do not exist here."""
    set_threads = getattr(sys.modules.get("faiss"), "omp_set_num_threads", None)
    if set_threads is not None:
        set_threads(1)
    for collection in list(_LIVE):
        collection._replace_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
