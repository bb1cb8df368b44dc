"""A search index of documents, in memory or saved in a folder."""

import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._validation import document_vectors, query_vector, validate_encoder, validate_top_k
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.hits import Hit
from edgeembed_runtime.index.candidates import new_candidate_search
from edgeembed_runtime.index.collection import Collection
from edgeembed_runtime.index.engine import INDEX_PRECISIONS, Engine, EngineName, IndexPrecision
from edgeembed_runtime.index.folder import INDEX_FOLDER, IndexContent, index_state, read_index, write_index
from edgeembed_runtime.index.npy import MappedArrays
from edgeembed_runtime.index.rows import IndexRows, validate_documents, validate_ids, validate_path
from edgeembed_runtime.index.vectors import GrowingArray, StoredVectors
from edgeembed_runtime.similarity import top_k_indices
from edgeembed_runtime.storage.atomic import atomic_folder, check_output_path, resolve_folder_link
from edgeembed_runtime.storage.file_lock import locked


class _SavedState(NamedTuple):
    """The folder that an index was last opened from or saved to, and its `index_state` at that time."""

    folder: Path
    state: str


class Index:
    """A search index of documents. `Index.build` and `Index.open` create one.

    Threads may share an index: searches run in parallel, additions and removals one at a time. A forked process may
    keep using it; faiss then uses one thread.

    The first document has the id 0, the next one 1, and so on. An id is never used again.

    Example:
        >>> index = Index.build(encoder, ["the cat", "open a file"], precision="int8")
        >>> index.add(["read a file"])
        [2]
        >>> index.remove([0])
        >>> [hit.id for hit in index.search("the cat", top_k=3)]
        [1, 2]
    """

    def __init__(
        self,
        encoder: Encoder,
        engine: Engine,
        content: IndexContent,
        saved: _SavedState | None = None,
    ) -> None:
        search = new_candidate_search(engine, content.precision, encoder.dimension, content.arrays)
        self._encoder = encoder
        self._precision = content.precision
        self._engine = engine
        self._mapped = content.mapped
        self._collection = Collection(content.rows, search, content.mapped)
        self._saved = saved

    @classmethod
    def build(
        cls,
        encoder: Encoder,
        documents: Iterable[str],
        *,
        precision: IndexPrecision = "float32",
        engine: EngineName | Engine = "numpy",
        embeddings: npt.ArrayLike | None = None,
        show_progress_bar: bool = False,
    ) -> "Index":
        """Build an index of documents.

        Args:
            encoder: The encoder of documents and queries.
            documents: The texts.
            precision: The precision of the stored vectors: "float32", "float16", "int8", or "binary", which finds
                candidates by sign bits and scores them in float16.
            engine: The search engine: "numpy" (exact), or "faiss-ivf" or "faiss-hnsw" (approximate, with a float32 copy
                of the vectors in memory). Pass an `Engine` to change its settings.
            embeddings: The documents' embeddings, (documents, dimension), of any norm, if they are known already; the
                texts are then not encoded. A zero vector scores 0.
            show_progress_bar: Whether to show a counter on stderr, if it is a terminal, after two seconds.

        Raises:
            InputError: If a document is not a str, the precision or engine is unknown, the engine does not support the
                precision, or the embeddings have another shape or type or are not finite.
            MissingExtraError: If the engine needs faiss, which is not installed.
        """
        validate_encoder(encoder)
        if precision not in INDEX_PRECISIONS:
            raise InputError(f"the precision is {precision!r}, expected one of {', '.join(INDEX_PRECISIONS)}")
        chosen = Engine.from_name(engine)
        new_candidate_search(chosen, precision, encoder.dimension)  # raises before the documents are encoded
        texts = validate_documents(documents)
        vectors = document_vectors(encoder, texts, embeddings, show_progress_bar=show_progress_bar)
        ids = GrowingArray(np.arange(len(texts), dtype=np.int64))
        rows = IndexRows(texts, ids, len(texts), StoredVectors.quantize(vectors, precision))
        return cls(encoder, chosen, IndexContent(precision, chosen, rows, {}, MappedArrays()))

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        encoder: Encoder | None = None,
        *,
        engine: EngineName | Engine | None = None,
        verify: bool = False,
    ) -> "Index":
        """Open a saved index. Its vectors are mapped into memory and not read.

        Other programs must not change the files while the index is open. `save` never does: it replaces the folder as a
        whole. If a file is truncated, the next call raises InputError; a call that reads it at that moment ends with
        the process (SIGBUS).

        Args:
            path: The folder.
            encoder: The encoder that built the index; None means the built-in encoder.
            engine: The search engine; None means the one that was saved. Every index can be opened with "numpy".
            verify: Whether to compare the SHA-256 of every file, which takes about a second per gigabyte. Sizes, dtypes
                and shapes are always checked.

        Raises:
            InputError: If the folder is not an index, is damaged, or was built by another encoder.
            MissingExtraError: If the engine needs faiss, which is not installed.
        """
        encoder = Encoder() if encoder is None else encoder
        validate_encoder(encoder)
        folder = validate_path(path)
        content, state = read_index(folder, encoder, verify=verify)
        chosen = content.engine if engine is None else Engine.from_name(engine)
        is_same = (chosen.name, chosen.nlist) == (content.engine.name, content.engine.nlist)
        if not is_same:
            content = dataclasses.replace(content, arrays={})
        return cls(encoder, chosen, content, _SavedState(_real_path(folder), state))

    @classmethod
    def append_to(
        cls,
        path: str | os.PathLike[str],
        documents: Iterable[str],
        encoder: Encoder | None = None,
        *,
        show_progress_bar: bool = False,
    ) -> "Index":
        """Add documents to a saved index. Several processes may do so at once without losing documents.

        The index is locked while it is read and written, and not while the documents are encoded. All its files are
        compared with their checksums.

        Args:
            path: The folder.
            documents: The texts.
            encoder: The encoder that built the index; None means the built-in encoder.
            show_progress_bar: As in `build`.

        Returns:
            The index as it was saved, including documents of other processes.

        Raises:
            InputError: If the folder is not an index, is damaged, was built by another encoder, cannot be written, or
                is locked by other processes for ten minutes; or if a document is not a str.
            MissingExtraError: If the engine of the index needs faiss, which is not installed.
        """
        encoder = Encoder() if encoder is None else encoder
        validate_encoder(encoder)
        texts = validate_documents(documents)
        folder = resolve_folder_link(validate_path(path))
        if not folder.parent.is_dir():
            return cls.open(folder, encoder)  # raises InputError: there is no index
        with locked(folder):
            check_output_path(folder, force=True, kind=INDEX_FOLDER)
            index = cls.open(folder, encoder, verify=True)
        vectors = document_vectors(encoder, texts, None, show_progress_bar=show_progress_bar)
        with locked(folder):
            if index._saved is None or index_state(folder) != index._saved.state:
                index = cls.open(folder, encoder, verify=True)
            index._collection.append(texts, vectors)
            index._write(folder, force=True)
        return index

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._collection.rows)

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return self._collection.rows.vectors.dimension

    def add(
        self, documents: Iterable[str], *, embeddings: npt.ArrayLike | None = None, show_progress_bar: bool = False
    ) -> list[int]:
        """Add all of the documents or, if one is invalid, none.

        The first addition to an opened index reads its vectors into memory.

        Args:
            documents: The texts.
            embeddings: As in `build`.
            show_progress_bar: As in `build`.

        Returns:
            The id of each document.

        Raises:
            InputError: As in `build`.
        """
        texts = validate_documents(documents)
        vectors = document_vectors(self._encoder, texts, embeddings, show_progress_bar=show_progress_bar)
        return self._collection.append(texts, vectors)

    def remove(self, ids: Iterable[int]) -> None:
        """Remove all of the documents or, if one does not exist, none.

        The remaining vectors are copied, so remove many documents in one call. With faiss, the next search rebuilds its
        index, which takes long for "faiss-hnsw".

        Args:
            ids: The ids, as `add` and hits have them.

        Raises:
            InputError: If there is no document with one of the ids.
        """
        self._collection.remove(validate_ids(ids))

    def search(self, query: str | npt.ArrayLike, top_k: int | None = 10) -> list[Hit]:
        """Return the documents that are most similar to a query, best first; ties are in the order of their ids.

        Args:
            query: A text, or its embedding, (dimension,).
            top_k: The maximum number of hits; None returns all documents.

        Raises:
            InputError: If the query is invalid or blank, or `top_k` is below 1.
        """
        validate_top_k(top_k)
        vector = query_vector(self._encoder, query)
        rows, candidates = self._collection.candidates(vector, top_k)
        scores = rows.vectors.cosine_similarity(vector, candidates)
        best = top_k_indices(scores, top_k)
        positions = best if candidates is None else candidates[best]
        found = zip(positions, rows.ids.rows[positions], scores[best], strict=True)
        return [Hit(int(document_id), float(score), rows.documents[i]) for i, document_id, score in found]

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Save the index in a folder, atomically.

        One process at a time writes to a folder; others wait. An index that was opened from `path`, or saved there
        before, does not replace what another process or `Index` saved there since. To add documents from several
        processes, use `append_to`.

        Args:
            path: The folder; with `force`, it may be the one that the index was opened from.
            force: Whether an existing index may be replaced. Another folder, or an index folder that contains other
                files, is never replaced.

        Raises:
            InputError: If `path` exists and may not be replaced, was changed since this index was opened from it or
                saved to it, or cannot be written.
        """
        folder = resolve_folder_link(validate_path(path))
        with locked(folder):
            check_output_path(folder, force=force, kind=INDEX_FOLDER)
            if self._was_changed(folder):
                raise InputError(
                    f"{folder} was changed since this index was opened or saved, expected no change; "
                    "open it again and repeat your changes, or save to another path"
                )
            self._write(folder, force=force)

    def _was_changed(self, folder: Path) -> bool:
        """Return whether a folder that this index was opened from or saved to has other content now."""
        if self._saved is None or self._saved.folder != _real_path(folder):
            return False
        return index_state(folder) not in (None, self._saved.state)

    def _write(self, folder: Path, *, force: bool) -> None:
        """Write or replace a folder whose lock is held."""
        rows, arrays = self._collection.snapshot()
        content = IndexContent(self._precision, self._engine, rows, arrays, self._mapped)
        with atomic_folder(folder, force=force, kind=INDEX_FOLDER) as new:
            state = write_index(new, content, self._encoder)
        self._saved = _SavedState(_real_path(folder), state)


def _real_path(folder: Path) -> Path:
    return Path(os.path.realpath(folder))
