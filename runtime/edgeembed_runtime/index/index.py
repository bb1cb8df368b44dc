"""Documents that can be searched, in memory or in a folder."""

import os
import sys
import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._validation import (
    document_vectors,
    query_vector,
    validate_encoder,
    validate_texts,
    validate_top_k,
)
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.hits import Hit
from edgeembed_runtime.index.engine import INDEX_PRECISIONS, Engine, EngineName, IndexPrecision
from edgeembed_runtime.index.finders import Finder, Positions, new_finder
from edgeembed_runtime.index.folder import INDEX_FOLDER, IndexContent, index_state, read_index, write_index
from edgeembed_runtime.index.growing import GrowingRows
from edgeembed_runtime.index.npy import MappedArrays
from edgeembed_runtime.index.stored_vectors import StoredVectors
from edgeembed_runtime.similarity import top_k_indices
from edgeembed_runtime.storage.atomic import atomic_folder, check_output_path, resolve_folder_link
from edgeembed_runtime.storage.locking import locked


@dataclass(frozen=True)
class _Rows:
    """What an index holds, row by row; the list of documents may be longer than the rest."""

    documents: list[str]
    numbers: GrowingRows
    next_number: int
    vectors: StoredVectors
    finder: Finder | None


@dataclass(frozen=True)
class _SavedState:
    """What was in an index's folder when it was last opened from there or saved there."""

    folder: Path
    state: str


class Index:
    """Documents that can be searched; `Index.build` and `Index.open` make one.

    Threads may share one, and a forked process may go on using it: the fork waits until faiss has
    done what it is doing, and in the child faiss works on one thread.

    A document's number is 0 for the first that was added, 1 for the second and so on, and is never used again.

    Example:
        >>> index = Index.build(encoder, ["the cat", "open a file"], precision="int8")
        >>> index.add(["read a file"])
        [2]
        >>> index.remove([0])
        >>> [hit.id for hit in index.search("the cat", k=3)]
        [1, 2]
    """

    def __init__(
        self,
        encoder: Encoder,
        precision: IndexPrecision,
        engine: Engine,
        rows: _Rows,
        mapped: MappedArrays | None = None,
        saved: _SavedState | None = None,
    ) -> None:
        self._encoder = encoder
        self._precision = precision
        self._engine = engine
        self._rows = rows
        self._mapped = mapped or MappedArrays()
        self._saved = saved
        self._lock = threading.Lock()
        _LIVE.add(self)
        self._refresh()

    @classmethod
    def build(
        cls,
        encoder: Encoder,
        documents: Iterable[str],
        *,
        precision: IndexPrecision = "float32",
        engine: EngineName | Engine = "numpy",
        vectors: npt.ArrayLike | None = None,
        show_progress_bar: bool = False,
    ) -> "Index":
        """Give an index of documents.

        Args:
            encoder: What gives the vectors.
            documents: The texts.
            precision: What a vector's numbers are kept as: "float32", the default, in 4 bytes; "float16" in 2;
                "int8" in 1; "binary" in a bit, by which candidates are found, whose scores are then computed from
                float16: on disk it takes a little more than float16, in memory a sixteenth of that once it was
                opened from there.
            engine: How it is searched: "numpy", the default, exactly; "faiss-flat" exactly, "faiss-ivf" and
                "faiss-hnsw" nearly, where faiss is installed. They keep another copy of the vectors, of float32, in
                memory. An `Engine` says it with its settings.
            vectors: The documents' vectors, (documents, dimension), where they are known already: the texts are
                then not encoded. They need not have unit length. A vector of zeros scores 0.
            show_progress_bar: Whether to count on stderr, if it is a terminal, once two seconds have passed.

        Raises:
            InputError: If a document is no text, there is no such precision or engine, the engine does not search
                that precision, or a vector is of another shape, type or not finite.
            MissingExtraError: If the engine needs faiss, and that is not installed.
        """
        validate_encoder(encoder)
        if precision not in INDEX_PRECISIONS:
            raise InputError(f"the precision is {precision!r}, expected one of {', '.join(INDEX_PRECISIONS)}")
        chosen = Engine.of(engine)
        finder = new_finder(chosen, precision, encoder.dimension)
        texts = _as_documents(documents)
        units = document_vectors(encoder, texts, vectors, show_progress_bar=show_progress_bar)
        numbers = GrowingRows(np.arange(len(texts), dtype=np.int64))
        rows = _Rows(texts, numbers, len(texts), StoredVectors.of(units, precision), finder)
        return cls(encoder, precision, chosen, rows)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        encoder: Encoder | None = None,
        *,
        engine: EngineName | Engine | None = None,
        verify: bool = True,
    ) -> "Index":
        """Open the index that was saved in a folder, its vectors mapped into memory rather than read.

        Nothing else may change the files in the folder while the index is open; `save` never does, it replaces the
        folder as a whole. If another program cuts a file short in place, the next call raises InputError; only a call
        that is reading at that very moment cannot notice, and the system then ends the process (SIGBUS).

        Args:
            path: The folder.
            encoder: The encoder that built it; None, the default, stands for the one inside the wheel.
            engine: How it is searched; None, the default, is as it was saved. Any index opens with "numpy".
            verify: Whether to compare every file with its checksum, which reads them all once: about a second for
                a gigabyte. Their sizes and kinds are checked in any case.

        Raises:
            InputError: If the folder is no index, is damaged, or was built by another encoder.
            MissingExtraError: If the engine needs faiss, and that is not installed.
        """
        own = Encoder() if encoder is None else encoder
        validate_encoder(own)
        folder = _as_path(path)
        content, state = read_index(folder, own, verify=verify)
        chosen = content.engine if engine is None else Engine.of(engine)
        is_same = (chosen.name, chosen.nlist) == (content.engine.name, content.engine.nlist)
        finder = new_finder(chosen, content.precision, own.dimension, content.arrays if is_same else None)
        numbers, vectors = GrowingRows(content.numbers), StoredVectors(GrowingRows(content.vectors))
        rows = _Rows(content.documents, numbers, content.next_number, vectors, finder)
        return cls(own, content.precision, chosen, rows, content.mapped, _SavedState(_real(folder), state))

    @classmethod
    def append_to(
        cls,
        path: str | os.PathLike[str],
        documents: Iterable[str],
        encoder: Encoder | None = None,
        *,
        show_progress_bar: bool = False,
    ) -> "Index":
        """Add documents to a saved index. Several processes may do so at once: the documents of all are kept.

        The index is locked while it is read and written, and not while the documents are encoded.

        Args:
            path: The folder.
            documents: The texts.
            encoder: The encoder that built the index; None, the default, stands for the one inside the wheel.
            show_progress_bar: As for `build`.

        Returns:
            The index as it was saved, the documents of other processes included.

        Raises:
            InputError: If the folder is no index, is damaged, was built by another encoder, cannot be written, or
                other processes keep it locked for ten minutes; or if a document is no text.
            MissingExtraError: If the engine of the index needs faiss, and that is not installed.
        """
        own = Encoder() if encoder is None else encoder
        validate_encoder(own)
        texts = _as_documents(documents)
        folder = resolve_folder_link(_as_path(path))
        if not folder.parent.is_dir():
            return cls.open(folder, own)  # raises: there is none
        with locked(folder):
            check_output_path(folder, force=True, kind=INDEX_FOLDER)
            index = cls.open(folder, own)
        units = document_vectors(own, texts, None, show_progress_bar=show_progress_bar)
        with locked(folder):
            if index._saved is None or index_state(folder) != index._saved.state:
                index = cls.open(folder, own)
            index._add(texts, units)
            index._write(folder, force=True)
        return index

    def __len__(self) -> int:
        """Give the number of documents."""
        return len(self._rows.numbers)

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self._rows.vectors.dimension

    def add(
        self, documents: Iterable[str], *, vectors: npt.ArrayLike | None = None, show_progress_bar: bool = False
    ) -> list[int]:
        """Add documents, all of them or, if something is wrong, none.

        The first addition to an index that was opened reads its vectors into memory.

        Args:
            documents: The texts.
            vectors: As for `build`.
            show_progress_bar: As for `build`.

        Returns:
            The number of each, by which hits name it and `remove` takes it out.

        Raises:
            InputError: As for `build`.
        """
        texts = _as_documents(documents)
        units = document_vectors(self._encoder, texts, vectors, show_progress_bar=show_progress_bar)
        return self._add(texts, units)

    def remove(self, numbers: Iterable[int]) -> None:
        """Take documents out, all of them or, if one is not there, none.

        The vectors of the others are copied, so that many at once are best removed at once. faiss makes its
        structure again at the next search, which with "faiss-hnsw" takes long.

        Args:
            numbers: Their numbers, as `add` and hits give them.

        Raises:
            InputError: If a number is none of a document that is there.
        """
        unwanted = _as_numbers(numbers)
        with self._lock:
            self._mapped.check()
            old = self._rows
            present = old.numbers.rows
            if unknown := sorted(unwanted.difference(present.tolist())):
                named = ", ".join(map(str, unknown[:5])) + (" and more" if len(unknown) > 5 else "")
                raise InputError(f"the index has no document {named}, expected numbers of documents that are there")
            positions = np.flatnonzero(~np.isin(present, np.array(list(unwanted), dtype=np.int64)))
            self._rows = replace(
                old,
                documents=[old.documents[i] for i in positions],
                numbers=old.numbers.kept(positions),
                vectors=old.vectors.kept(positions),
                finder=old.finder and old.finder.kept(positions),
            )

    def search(self, query: str | npt.ArrayLike, k: int | None = 10) -> list[Hit]:
        """Give the documents nearest to a query, best first; of equally near ones the earlier first.

        Args:
            query: What is looked for: a text, or its vector, (dimension,).
            k: How many hits to give at most; None gives all.

        Raises:
            InputError: If the query is neither or is blank, or `k` is below 1.
        """
        validate_top_k(k)
        wanted = query_vector(self._encoder, query)
        self._mapped.check()
        rows, among = self._candidates(wanted, k)
        scores = rows.vectors.cosines(wanted, among)
        best = top_k_indices(scores, k)
        positions = best if among is None else among[best]
        found = zip(positions, rows.numbers.rows[positions], scores[best], strict=True)
        return [Hit(int(number), float(score), rows.documents[i]) for i, number, score in found]

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the index to a folder, whole or not at all.

        Only one process at a time writes to a folder; others wait. An index that was opened from `path`, or saved there
        before, does not replace what another process, or another `Index`, saved there since. To add documents from
        several processes, use `append_to`.

        Args:
            path: Where the folder is to appear; with `force` it may be the one that the index was opened from.
            force: Whether an index that is there may be replaced, whatever it holds. Anything else that is there, or
                an index in whose folder there is a file of something else, is never replaced.

        Raises:
            InputError: If `path` exists and may not be replaced, was changed since this index was opened from there or
                saved there, or cannot be written.
        """
        folder = resolve_folder_link(_as_path(path))
        with locked(folder):
            check_output_path(folder, force=force, kind=INDEX_FOLDER)
            if self._was_changed(folder):
                raise InputError(
                    f"{folder} was changed since this index was opened or saved, expected what it was; "
                    "open it again and repeat what you changed, or save to another path"
                )
            self._write(folder, force=force)

    def _add(self, texts: list[str], units: npt.NDArray[np.float32]) -> list[int]:
        with self._lock:
            self._mapped.check()
            self._refresh()  # an addition that failed may have left vectors in the finder
            old = self._rows
            added = np.arange(old.next_number, old.next_number + len(texts), dtype=np.int64)
            numbers, stored = old.numbers.followed_by(added), old.vectors.followed_by(units)
            old.documents[len(old.numbers) :] = texts
            new = replace(old, numbers=numbers, next_number=old.next_number + len(texts), vectors=stored)
            if new.finder is not None:
                new.finder.refresh(stored)
            self._rows = new
        return [int(number) for number in added]

    def _was_changed(self, folder: Path) -> bool:
        """Return whether a folder holds another index than when this one was opened from there or saved there."""
        if self._saved is None or self._saved.folder != _real(folder):
            return False
        return index_state(folder) not in (None, self._saved.state)

    def _write(self, folder: Path, *, force: bool) -> None:
        """Replace a folder whose lock is held."""
        with self._lock:
            self._mapped.check()
            self._refresh()
            content = self._content()
        with atomic_folder(folder, force=force, kind=INDEX_FOLDER) as new:
            state = write_index(new, content, self._encoder)
        self._saved = _SavedState(_real(folder), state)

    def _candidates(self, query: npt.NDArray[np.float32], k: int | None) -> tuple[_Rows, Positions | None]:
        """Give what the index holds at this moment, and which of it may be near; None stands for all of it."""
        rows = self._rows
        if rows.finder is None or k is None:
            return rows, None
        with self._lock:  # a finder changes while it searches, if vectors were added
            rows = self._rows
            if rows.finder is None or k >= len(rows.numbers):
                return rows, None
            return rows, rows.finder.candidates(rows.vectors, query, k)

    def _refresh(self) -> None:
        if self._rows.finder is not None:
            self._rows.finder.refresh(self._rows.vectors)

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    def _content(self) -> IndexContent:
        rows = self._rows
        return IndexContent(
            precision=self._precision,
            engine=self._engine,
            documents=rows.documents[: len(self)],
            numbers=rows.numbers.rows,
            next_number=rows.next_number,
            vectors=rows.vectors.rows,
            arrays={} if rows.finder is None else rows.finder.arrays(),
            mapped=self._mapped,
        )


_LIVE: weakref.WeakSet[Index] = weakref.WeakSet()


def _begin_anew() -> None:
    """Wait, in a forked process, for no thread of the one that it came from."""
    # The threads that faiss kept for the one that forked are not there, and it would wait for them for ever.
    set_threads = getattr(sys.modules.get("faiss"), "omp_set_num_threads", None)
    if set_threads is not None:
        set_threads(1)
    for index in list(_LIVE):
        index._unlock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _as_path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputError(f"the path is {type(path).__name__}, expected the path of an index's folder as text")
    return Path(path)


def _real(folder: Path) -> Path:
    return Path(os.path.realpath(folder))


def _as_documents(documents: Iterable[str]) -> list[str]:
    texts = validate_texts(documents, "document")
    for position, text in enumerate(texts):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            message = f"document {position} holds half of a surrogate pair, expected valid text; remove it"
            raise InputError(message) from error
    return texts


def _as_numbers(numbers: Iterable[int]) -> set[int]:
    if isinstance(numbers, str | bytes) or not isinstance(numbers, Iterable):
        raise InputError(f"the numbers are {type(numbers).__name__}, expected a list of the numbers of documents")
    listed = list(numbers)
    for number in listed:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise InputError(f"{number!r} is no number of a document, expected a whole number as hits give it")
    return {int(number) for number in listed}
