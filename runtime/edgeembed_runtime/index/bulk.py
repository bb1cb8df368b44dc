"""Build the folder of an index from Parquet files, with a few thousand documents in memory at a time."""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from edgeembed_runtime._retrieval_inputs import validate_encoder
from edgeembed_runtime._validation import validate_column_names, validate_folder_path
from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.candidates import SIGNS, pack_signs
from edgeembed_runtime.index.encoding import encode_passages
from edgeembed_runtime.index.engine import Engine, IndexPrecision, check_precision
from edgeembed_runtime.index.folder import DOCUMENTS, INDEX_FOLDER, PASSAGES, VECTORS, write_documents, write_manifest
from edgeembed_runtime.index.npy import ArrayWriter
from edgeembed_runtime.index.parquet import ParquetBatch, ParquetDocuments
from edgeembed_runtime.index.passages import PassageSettings
from edgeembed_runtime.index.rows import PASSAGE_DTYPE, IndexRows
from edgeembed_runtime.index.settings import IndexSettings
from edgeembed_runtime.index.table import DocumentBatch
from edgeembed_runtime.index.vectors import STORED_DTYPES, StoredVectors
from edgeembed_runtime.pipeline import with_counter
from edgeembed_runtime.storage.atomic import atomic_folder, check_output_path, resolve_folder_link
from edgeembed_runtime.storage.file_lock import locked

_MAX_DOCUMENTS = int(np.iinfo(PASSAGE_DTYPE).max)


def build_index_folder(
    encoder: Encoder,
    shards: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    id_column: str | None,
    metadata_columns: Iterable[str],
    precision: IndexPrecision,
    force: bool,
    show_progress_bar: bool,
) -> int:
    """Write the folder of an index, atomically, and return the number of documents; see `Index.build_from`."""
    validate_encoder(encoder)
    check_precision(precision)
    columns = validate_column_names(metadata_columns)
    if id_column is not None:
        validate_column_names([id_column])
    shards_folder = validate_folder_path(shards, "a folder of Parquet files")
    folder = resolve_folder_link(validate_folder_path(out))
    with locked(folder):
        check_output_path(folder, force=force, kind=INDEX_FOLDER)
        source = ParquetDocuments(shards_folder, encoder.dimension, id_column, columns)
        if source.count > _MAX_DOCUMENTS:
            raise InputError(f"{shards} has {source.count:,} documents, expected at most {_MAX_DOCUMENTS:,}; split it")
        settings = IndexSettings(precision, Engine(), PassageSettings(), _identity(source, encoder))
        with atomic_folder(folder, force=force, kind=INDEX_FOLDER) as new:
            writer = _FolderWriter(new, settings, source.count)
            steps = writer.append_all(source, encoder)
            for _ in with_counter(steps, source.count, "documents") if show_progress_bar else steps:
                pass
            writer.finish()
    return source.count


def _identity(source: ParquetDocuments, encoder: Encoder) -> EncoderIdentity:
    """Return what computed the embeddings: the given encoder, unless manifest.json states another one of its space.

    Raises:
        InputError: If the embeddings cannot be compared with those of the encoder.
    """
    given = EncoderIdentity.of(encoder.bundle)
    found = source.encoded_by
    if found is None or found.fingerprint == given.fingerprint:
        return given
    if not found.is_comparable(given):
        others = "" if found.space is None else f" or another one of the space {found.space}"
        raise InputError(
            f"{source.folder} holds embeddings of {found}, and the encoder {given} is given; expected the encoder that "
            f"computed them{others}: pass that one, or encode the texts again"
        )
    return found


class _FolderWriter:
    """Writes the files of an index into an empty folder, batch by batch."""

    def __init__(self, folder: Path, settings: IndexSettings, count: int) -> None:
        self._folder = folder
        self._settings = settings
        self._count = count
        self._written = 0
        self._next_id = 0

    def append_all(self, source: ParquetDocuments, encoder: Encoder) -> Iterator[int]:
        """Write all documents, and yield the size of each batch once it is written."""
        dtype = STORED_DTYPES[self._settings.precision]
        with ExitStack() as stack:
            documents = stack.enter_context((self._folder / DOCUMENTS).open("w", encoding="utf-8", newline="\n"))
            vectors = stack.enter_context(self._array(VECTORS, dtype, encoder.dimension))
            passages = stack.enter_context(self._array(PASSAGES, PASSAGE_DTYPE, 3))
            signs = None
            if self._settings.precision == "binary":
                signs = stack.enter_context(self._array(f"{SIGNS}.npy", "<u8", (encoder.dimension + 63) // 64))
            for batch in source.batches():
                rows = self._rows(batch, encoder)
                write_documents(documents, rows.table)
                vectors.append(rows.vectors.rows)
                passages.append(rows.passages.rows + np.array([self._written, 0, 0], dtype=PASSAGE_DTYPE))
                if signs is not None:
                    signs.append(pack_signs(rows.vectors.rows))
                self._written += len(rows.table)
                self._next_id = rows.table.next_id
                yield len(rows.table)

    def finish(self) -> None:
        """Write index.json."""
        if self._written != self._count:
            raise InputError(
                f"the Parquet files had {self._count:,} rows and then {self._written:,}, expected no change; "
                "build the index again"
            )
        write_manifest(self._folder, self._settings, documents=self._count, vectors=self._count, next_id=self._next_id)

    def _array(self, name: str, dtype: str, width: int) -> ArrayWriter:
        return ArrayWriter(self._folder / name, dtype, (self._count, width))

    def _rows(self, batch: ParquetBatch, encoder: Encoder) -> IndexRows:
        """Return the validated documents of a batch with their quantized vectors."""
        empty = IndexRows.empty(StoredVectors.empty(encoder.dimension, self._settings.precision), self._next_id)
        try:
            documents = DocumentBatch.validate(batch.texts, batch.ids, batch.metadata)
            passages = encode_passages(encoder, documents.texts, None, batch.embeddings, show_progress_bar=False)
            return empty.append(documents, passages)
        except InputError as error:
            raise InputError(f"{batch.where}: {error}") from error
