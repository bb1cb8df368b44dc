"""A search index of documents, in memory or saved in a folder."""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy.typing as npt

from edgeembed_runtime._retrieval_inputs import validate_encoder
from edgeembed_runtime._validation import validate_folder_path
from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.documents import DocumentId, validate_ids
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.candidates import new_candidate_search
from edgeembed_runtime.index.collection import Collection
from edgeembed_runtime.index.encoding import encode_passages
from edgeembed_runtime.index.engine import Engine, EngineName, IndexPrecision, check_precision
from edgeembed_runtime.index.folder import (
    INDEX_FOLDER,
    IndexContent,
    SavedStates,
    index_state,
    read_index,
    replace_index,
)
from edgeembed_runtime.index.npy import MappedArrays
from edgeembed_runtime.index.passages import PassageSettings
from edgeembed_runtime.index.reader import IndexReader
from edgeembed_runtime.index.rows import EncodedPassages, IndexRows
from edgeembed_runtime.index.settings import IndexSettings
from edgeembed_runtime.index.table import DocumentBatch
from edgeembed_runtime.index.vectors import StoredVectors
from edgeembed_runtime.storage.atomic import check_output_path, resolve_folder_link
from edgeembed_runtime.storage.file_lock import locked

_DEFAULT_PASSAGES = PassageSettings()


class Index(IndexReader):
    """A search index of documents. `Index.build` and `Index.open` create one; `Index.build_from` writes one.

    A document has a text, an id that is unique in the index, and metadata. Ids are integers and strings. Without
    `ids`, a document gets an integer above all that were used before, from 0 on.

    Threads may share an index: searches run in parallel, changes one at a time. A forked process may keep using it;
    faiss then uses one thread. An index can be pickled, with its content.

    Examples:
        >>> index = Index.build(encoder, ["the cat", "open a file"], ids=["cats", "files"], precision="int8")
        >>> index.add(["read a file"], metadata=[{"language": "en"}])
        [0]
        >>> index.remove(["cats"])
        >>> [hit.id for hit in index.search("the cat", top_k=3)]
        ['files', 0]
        >>> [hit.id for hit in index.search("the cat", filter={"language": "en"})]
        [0]
    """

    def __init__(self, encoder: Encoder, content: IndexContent, saved: SavedStates | None = None) -> None:
        settings = content.settings
        search = new_candidate_search(settings.engine, settings.precision, encoder.dimension, content.arrays)
        super().__init__(encoder, Collection(content.rows, search, content.mapped))
        self._settings = settings
        self._saved = SavedStates() if saved is None else saved

    @classmethod
    def build(  # noqa: PLR0913 - settings are keyword-only
        cls,
        encoder: Encoder,
        documents: Iterable[str],
        *,
        ids: Iterable[DocumentId] | None = None,
        metadata: Iterable[Mapping[str, Any]] | None = None,
        passages: PassageSettings | None = _DEFAULT_PASSAGES,
        precision: IndexPrecision = "float32",
        engine: EngineName | Engine = "numpy",
        embeddings: npt.ArrayLike | None = None,
        show_progress_bar: bool = False,
    ) -> "Index":
        """Build an index of documents.

        Args:
            encoder: The encoder of documents and queries.
            documents: The texts.
            ids: The id of each document, an integer or a str; None means 0, 1, 2, ...
            metadata: A dict for each document. A value is a str, a number, a bool, None, or a list of these.
            passages: How documents that the encoder cannot read as a whole are split into passages; the score of a
                document is that of its best passage. None reads only the beginning of such a document.
            precision: The precision of the stored vectors: "float32", "float16", "int8", or "binary", which finds
                candidates by sign bits and scores them in float16.
            engine: The search engine: "numpy" (exact), or "faiss-ivf" or "faiss-hnsw" (approximate, with a float32 copy
                of the vectors in memory). Pass an `Engine` to change its settings.
            embeddings: The documents' embeddings, (documents, dimension), of any norm, if they are known already; the
                texts are then neither encoded nor split. A zero vector scores -1.
            show_progress_bar: Whether to show a counter on stderr, if it is a terminal, after two seconds.

        Raises:
            InputError: If a document is not a str, an id or metadata is invalid, an id is there twice, the precision or
                engine is unknown, the engine does not support the precision, or the embeddings have another shape or
                type or are not finite.
            MissingExtraError: If the engine needs faiss, which is not installed.
        """
        validate_encoder(encoder)
        check_precision(precision)
        if passages is not None and not isinstance(passages, PassageSettings):
            raise InputError(f"the passages are {type(passages).__name__}, expected PassageSettings, or None")
        rows = IndexRows.empty(StoredVectors.empty(encoder.dimension, precision))
        settings = IndexSettings(precision, Engine.from_name(engine), passages, EncoderIdentity.of(encoder.bundle))
        index = cls(encoder, IndexContent(settings, rows, {}, MappedArrays()))
        batch = DocumentBatch.validate(documents, ids, metadata)
        index._collection.append(batch, index._encode(batch, embeddings, show_progress_bar=show_progress_bar))
        return index

    @classmethod
    def build_from(
        cls,
        encoder: Encoder,
        shards: str | os.PathLike[str],
        out: str | os.PathLike[str],
        *,
        id_column: str | None = None,
        metadata_columns: Iterable[str] = (),
        precision: IndexPrecision = "float32",
        force: bool = False,
        show_progress_bar: bool = False,
    ) -> int:
        """Build and save an index of the documents and embeddings in Parquet files, which may be larger than memory.

        Only a few thousand documents are in memory at a time, and the column of ids if there is one. The index is not
        opened: `open` maps its vectors into memory, but reads all texts, ids and metadata. The saved engine is "numpy".

        Args:
            encoder: The encoder that computed the embeddings, or another one of the same embedding space, as in `open`.
                It encodes nothing here.
            shards: A folder of `edgeembed encode`, or another one with Parquet files that have a column "text" and a
                column "embedding" with lists of numbers. Only manifest.json says which encoder computed them, so
                nothing can check that in other folders. Each text is one passage, as with `embeddings` in `build`.
            out: The folder of the index, which is locked meanwhile.
            id_column: The column with ids, integers or strings; None means 0, 1, 2, ... in the order of manifest.json
                or, in other folders, of the names of files.
            metadata_columns: The columns with metadata.
            precision: As in `build`.
            force: As in `save`.
            show_progress_bar: As in `build`.

        Returns:
            The number of documents.

        Raises:
            InputError: If the Parquet files are incomplete, damaged or of an encoder of another space, a document is
                invalid, an id is there twice, or `out` exists and may not be replaced, or cannot be written.
            MissingExtraError: If pyarrow is not installed.
        """
        from edgeembed_runtime.index.bulk import build_index_folder  # which imports pyarrow

        return build_index_folder(
            encoder,
            shards,
            out,
            id_column=id_column,
            metadata_columns=metadata_columns,
            precision=precision,
            force=force,
            show_progress_bar=show_progress_bar,
        )

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
            encoder: The encoder that built the index, or another one of the same embedding space (`space` in the
                bundle's manifest), such as a student for the index of its teacher; None means the built-in encoder.
            engine: The search engine; None means the one that was saved. Every index can be opened with "numpy".
            verify: Whether to compare the SHA-256 of every file, which takes about a second per gigabyte. Sizes, dtypes
                and shapes are always checked.

        Raises:
            InputError: If the folder is not an index, is damaged, or was built by an encoder of another space.
            MissingExtraError: If the engine needs faiss, which is not installed.
        """
        encoder = Encoder() if encoder is None else encoder
        validate_encoder(encoder)
        folder = validate_folder_path(path)
        content, state = read_index(folder, encoder, verify=verify)
        if engine is not None:
            content = _with_engine(content, Engine.from_name(engine))
        index = cls(encoder, content)
        index._saved.record(folder, state)
        return index

    @classmethod
    def append_to(
        cls,
        path: str | os.PathLike[str],
        documents: Iterable[str],
        encoder: Encoder | None = None,
        *,
        ids: Iterable[DocumentId] | None = None,
        metadata: Iterable[Mapping[str, Any]] | None = None,
        show_progress_bar: bool = False,
    ) -> "Index":
        """Add documents to a saved index. Several processes may do so at once without losing documents.

        All files of the index are read, compared with their checksums and written again, so the time grows with the
        index: add many documents in one call. The index is locked while it is written, and not while it is read and the
        documents are encoded, unless another process changes it meanwhile.

        Args:
            path: The folder.
            documents: The texts.
            encoder: As in `open`.
            ids: As in `build`.
            metadata: As in `build`.
            show_progress_bar: As in `build`.

        Returns:
            The index as it was saved, including documents of other processes.

        Raises:
            InputError: If the folder is not an index, is damaged, was built by an encoder of another space, cannot be
                written, or is locked by other processes for ten minutes; or as in `add`.
            MissingExtraError: If the engine of the index needs faiss, which is not installed.
        """
        encoder = Encoder() if encoder is None else encoder
        validate_encoder(encoder)
        batch = DocumentBatch.validate(documents, ids, metadata)
        folder = resolve_folder_link(validate_folder_path(path))
        if not folder.parent.is_dir():
            return cls.open(folder, encoder)  # raises InputError: there is no index
        with locked(folder):
            check_output_path(folder, force=True, kind=INDEX_FOLDER)
        index = cls.open(folder, encoder, verify=True)
        index._collection.rows.table.check_new(batch.ids or ())  # before the documents are encoded
        passages = index._encode(batch, None, show_progress_bar=show_progress_bar)
        with locked(folder):
            if index_state(folder) not in index._saved.values():
                index = cls.open(folder, encoder, verify=True)
            index._collection.append(batch, passages)
            index._saved.record(folder, replace_index(folder, index._content(), force=True))
        return index

    def __repr__(self) -> str:
        """Return the number of documents, the dimension, the precision and the engine."""
        precision, engine = self._settings.precision, self._settings.engine.name
        return f"<Index: documents={len(self)}, dimension={self.dimension}, precision={precision}, engine={engine}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling: the content is copied, and the receiving process loads the encoder again."""
        content = dataclasses.replace(self._content(), mapped=MappedArrays())
        return Index, (self._encoder, content, SavedStates(self._saved))

    def add(
        self,
        documents: Iterable[str],
        *,
        ids: Iterable[DocumentId] | None = None,
        metadata: Iterable[Mapping[str, Any]] | None = None,
        embeddings: npt.ArrayLike | None = None,
        show_progress_bar: bool = False,
    ) -> list[DocumentId]:
        """Add all of the documents or, if one is invalid, none.

        The first addition to an opened index reads its vectors into memory.

        Args:
            documents: The texts.
            ids: As in `build`; None means the next integers.
            metadata: As in `build`.
            embeddings: As in `build`.
            show_progress_bar: As in `build`.

        Returns:
            The id of each document.

        Raises:
            InputError: As in `build`, or if there is a document with one of the ids already.
        """
        batch = DocumentBatch.validate(documents, ids, metadata)
        self._collection.rows.table.check_new(batch.ids or ())  # before the documents are encoded
        passages = self._encode(batch, embeddings, show_progress_bar=show_progress_bar)
        return list(self._collection.append(batch, passages))

    def update(
        self,
        ids: Iterable[DocumentId],
        documents: Iterable[str] | None = None,
        *,
        metadata: Iterable[Mapping[str, Any]] | None = None,
        embeddings: npt.ArrayLike | None = None,
    ) -> None:
        """Replace the texts or metadata, or both, of all of the documents or, if one does not exist, of none.

        If texts are replaced, the vectors are copied, as in `remove`.

        Args:
            ids: The ids of the documents.
            documents: Their new texts; None keeps the texts.
            metadata: Their new metadata, which replaces all of the old; None keeps it.
            embeddings: The embeddings of the new texts, as in `build`.

        Raises:
            InputError: If there is no document with one of the ids, an id is there twice, nothing is to be replaced, or
                as in `build`.
        """
        listed = validate_ids(ids)
        if documents is None and (metadata is None or embeddings is not None):
            given = "embeddings without documents" if embeddings is not None else "neither documents nor metadata"
            raise InputError(f"{given} were given, expected the new documents or metadata; pass them")
        self._collection.rows.table.find(listed)
        texts = [""] * len(listed) if documents is None else documents
        batch = DocumentBatch.validate(texts, listed, metadata)
        passages = None if documents is None else self._encode(batch, embeddings)
        self._collection.update(batch, passages)

    def remove(self, ids: Iterable[DocumentId]) -> None:
        """Remove all of the documents or, if one does not exist, none.

        The remaining vectors are copied, so remove many documents in one call. With faiss, the next search rebuilds its
        index, which takes long for "faiss-hnsw".

        Args:
            ids: The ids, as `add` and hits have them.

        Raises:
            InputError: If there is no document with one of the ids.
        """
        self._collection.remove(validate_ids(ids))

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Save the index in a folder, atomically.

        One process at a time writes to a folder; others wait. An index that was ever opened from `path`, or saved
        there, does not replace what another process or `Index` saved there since. To add documents from several
        processes, use `append_to`.

        Args:
            path: The folder; with `force`, it may be the one that the index was opened from.
            force: Whether an existing index may be replaced. Another folder, or an index folder that contains other
                files, is never replaced.

        Raises:
            InputError: If `path` exists and may not be replaced, was changed since this index was opened from it or
                saved to it, or cannot be written.
        """
        folder = resolve_folder_link(validate_folder_path(path))
        with locked(folder):
            check_output_path(folder, force=force, kind=INDEX_FOLDER)
            if self._saved.is_outdated(folder):
                raise InputError(
                    f"{folder} was changed since this index was opened or saved, expected no change; "
                    "open it again and repeat your changes, or save to another path"
                )
            self._saved.record(folder, replace_index(folder, self._content(), force=force))

    def _encode(
        self, batch: DocumentBatch, embeddings: npt.ArrayLike | None, *, show_progress_bar: bool = False
    ) -> EncodedPassages:
        passages, encoder = self._settings.passages, self._encoder
        if passages is not None and self._settings.built_by != EncoderIdentity.of(encoder.bundle):
            passages = passages.limited_to(encoder.max_seq_length)  # the builder may read more tokens
        return encode_passages(encoder, batch.texts, passages, embeddings, show_progress_bar=show_progress_bar)

    def _content(self) -> IndexContent:
        """Return the content at this moment, to be saved."""
        rows, arrays = self._collection.snapshot()
        return IndexContent(self._settings, rows, arrays, self._collection.mapped)


def _with_engine(content: IndexContent, engine: Engine) -> IndexContent:
    """Return the content of an index for another engine, which may not be able to use the saved arrays."""
    saved = content.settings.engine
    arrays = content.arrays if (engine.name, engine.nlist) == (saved.name, saved.nlist) else {}
    return dataclasses.replace(content, settings=dataclasses.replace(content.settings, engine=engine), arrays=arrays)
