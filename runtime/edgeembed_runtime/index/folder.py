"""Read and write the folder of an index.

    index.json        the encoder's fingerprint and embedding space, precision, engine, size and SHA-256 of the other
                      files, its own SHA-256
    documents.jsonl   one document per line, {"id": ..., "text": ..., "metadata": {...}}
    vectors.npy       (vectors, dimension) in the index's precision; of unit norm except for rounding, int8 per row
    passages.npy      (vectors, 3) int32: line of the document, from 0, and start and end of the passage in characters
    signs.npy         precision binary: sign bits of the vectors, 64 per word
    centroids.npy     engine faiss-ivf: the centroids of the lists

The SHA-256 of index.json covers its other fields, as `with_own_sha256` computes it.
"""

import json
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.documents import NO_METADATA, Document
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.candidates import Arrays
from edgeembed_runtime.index.npy import MappedArrays, write_array
from edgeembed_runtime.index.rows import PASSAGE_DTYPE, IndexRows
from edgeembed_runtime.index.settings import IndexSettings
from edgeembed_runtime.index.table import DocumentBatch, DocumentTable
from edgeembed_runtime.index.vectors import STORED_DTYPES, GrowingArray, StoredVectors
from edgeembed_runtime.storage.atomic import atomic_folder, wait_for_folder
from edgeembed_runtime.storage.files import is_file, sha256, sha256_of
from edgeembed_runtime.storage.folder_kind import FileRecord, FolderKind
from edgeembed_runtime.storage.json_fields import JsonFields, with_own_sha256

INDEX_MANIFEST = "index.json"
INDEX_FOLDER = FolderKind(INDEX_MANIFEST, ("schema_version", "encoder", "documents"))
_SCHEMA_VERSION = 5
DOCUMENTS = "documents.jsonl"
VECTORS = "vectors.npy"
PASSAGES = "passages.npy"
_REQUIRED = {DOCUMENTS, VECTORS, PASSAGES}
_DOCUMENT_FIELDS = {"id", "text", "metadata"}
# Writing a folder takes longer than reading it, so that a reader rarely needs a second attempt.
_MAX_ATTEMPTS = 100


@dataclass(frozen=True)
class IndexContent:
    """The content of an index's folder.

    Attributes:
        settings: The settings.
        rows: The documents.
        arrays: Arrays of the search engine, by name.
        mapped: The files that the arrays are mapped from.
    """

    settings: IndexSettings
    rows: IndexRows
    arrays: Arrays
    mapped: MappedArrays


class SavedStates(dict[Path, str]):
    """The `index_state` of folders when an index was last opened from them or saved to them, by path without links."""

    def is_outdated(self, folder: Path) -> bool:
        """Return whether a folder is one of these and has other content now."""
        states = [state for known, state in list(self.items()) if _is_same_folder(known, folder)]
        return bool(states) and index_state(folder) not in (None, *states)

    def record(self, folder: Path, state: str) -> None:
        """Replace the state of a folder, however its path was written before."""
        for known in [known for known in list(self) if _is_same_folder(known, folder)]:
            del self[known]
        self[_real_path(folder)] = state


def _is_same_folder(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one folder, which file systems that ignore case may spell in two ways."""
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return False


def _real_path(folder: Path) -> Path:
    """Return a path without links."""
    return Path(os.path.realpath(folder))


def replace_index(folder: Path, content: IndexContent, *, force: bool) -> str:
    """Write an index to a folder whose lock is held, or replace the index that is there, atomically.

    Returns:
        The folder's `index_state`.

    Raises:
        InputError: If the folder exists and may not be replaced, or cannot be written.
    """
    with atomic_folder(folder, force=force, kind=INDEX_FOLDER) as new:
        return _write_index(new, content)


def _write_index(folder: Path, content: IndexContent) -> str:
    """Write an index into an empty folder, and return the SHA-256 of its index.json.

    Raises:
        OSError: If a file cannot be written, for example because the disk is full.
    """
    rows = content.rows
    with (folder / DOCUMENTS).open("w", encoding="utf-8", newline="\n") as file:
        write_documents(file, rows.table)
    write_array(folder / VECTORS, rows.vectors.rows)
    write_array(folder / PASSAGES, rows.passages.rows)
    for name, array in content.arrays.items():
        write_array(folder / f"{name}.npy", array)
    return write_manifest(
        folder, content.settings, documents=len(rows.table), vectors=len(rows.vectors), next_id=rows.table.next_id
    )


def write_documents(file: TextIO, documents: Iterable[Document]) -> None:
    """Write documents as lines of documents.jsonl."""
    for each in documents:
        line = {"id": each.id, "text": each.text, "metadata": each.metadata}
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def write_manifest(folder: Path, settings: IndexSettings, *, documents: int, vectors: int, next_id: int) -> str:
    """Write the index.json of a folder with all other files, and return its SHA-256.

    Args:
        folder: The folder.
        settings: The settings.
        documents: The number of documents.
        vectors: The number of vectors.
        next_id: An integer above all integers that were ever used as ids.
    """
    manifest = {
        "schema_version": _SCHEMA_VERSION,
        "documents": documents,
        "vectors": vectors,
        "next_id": next_id,
        **settings.to_json(),
        "files": INDEX_FOLDER.records(folder),
    }
    text = json.dumps(with_own_sha256(manifest), indent=2, ensure_ascii=False) + "\n"
    (folder / INDEX_MANIFEST).write_text(text, encoding="utf-8", newline="\n")
    return sha256_of(text.encode())


def index_state(folder: Path) -> str | None:
    """Return the SHA-256 of index.json, which identifies the content of an index; None if there is no index.json.

    Raises:
        InputError: If the file cannot be read.
    """
    try:
        return sha256(folder / INDEX_MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(
            f"cannot read {folder / INDEX_MANIFEST}: {error.strerror}; expected a readable file"
        ) from error


def read_index(folder: Path, encoder: Encoder, *, verify: bool) -> tuple[IndexContent, str]:
    """Read an index, with its arrays mapped into memory. It is consistent even if it is replaced meanwhile.

    Args:
        folder: The folder.
        encoder: The encoder that built the index, or another one of the same embedding space.
        verify: Whether to compare the SHA-256 of every file, which reads them all. File sizes and the SHA-256 of
            index.json are always compared.

    Returns:
        The index, and the folder's `index_state`.

    Raises:
        InputError: If the folder is not an index, is damaged, or was built by an encoder of another space.
    """
    for _ in range(_MAX_ATTEMPTS):
        with _open_manifest(folder / INDEX_MANIFEST) as manifest:
            try:
                content, state = _read_once(folder, encoder, verify=verify), sha256_of(manifest.read())
            except (InputError, OSError, ValueError):  # a file may vanish or shrink while it is read
                if _is_current(folder, manifest.fileno()):
                    raise
            else:
                if _is_current(folder, manifest.fileno()):
                    return content, state
    raise InputError(f"{folder} was replaced {_MAX_ATTEMPTS} times while it was read; open it once it stays the same")


def _open_manifest(manifest: Path) -> BinaryIO:
    """Open index.json. While it is open, no other file has its inode number."""
    wait_for_folder(manifest.parent)
    if not is_file(manifest):
        raise InputError(f"{manifest.parent} holds no {manifest.name}; expected an index, as Index.save writes it")
    try:
        return manifest.open("rb")
    except OSError as error:
        raise InputError(f"cannot read {manifest}: {error.strerror}; expected a readable file") from error


def _is_current(folder: Path, descriptor: int) -> bool:
    """Return whether index.json is still the file that is open."""
    try:
        return os.path.samestat(os.fstat(descriptor), (folder / INDEX_MANIFEST).stat())
    except OSError:
        return False


def _read_once(folder: Path, encoder: Encoder, *, verify: bool) -> IndexContent:
    fields = _read_manifest(folder)
    settings = IndexSettings.parse(fields)
    _check_encoder(folder, settings.built_by, EncoderIdentity.of(encoder.bundle))
    count = fields.integer("vectors")
    optional = _optional_arrays(encoder.dimension, count)
    names = _check_files(folder, fields, _REQUIRED, optional, verify=verify)
    mapped = MappedArrays()
    vectors = mapped.map(folder / VECTORS, STORED_DTYPES[settings.precision], (count, encoder.dimension))
    table = _read_documents(folder / DOCUMENTS, fields)
    passages = _read_passages(folder / PASSAGES, count, table)
    return IndexContent(
        settings=settings,
        rows=IndexRows(table, StoredVectors(GrowingArray(vectors)), GrowingArray(passages)),
        arrays={Path(name).stem: mapped.map(folder / name, *optional[name]) for name in sorted(names - _REQUIRED)},
        mapped=mapped,
    )


def _read_manifest(folder: Path) -> JsonFields:
    fields = JsonFields.read(folder / INDEX_MANIFEST)
    version = fields.integer("schema_version")
    if version != _SCHEMA_VERSION:
        remedy = "build the index again" if version < _SCHEMA_VERSION else "upgrade edgeembed-runtime"
        raise InputError(f"{folder} has schema version {version}, expected {_SCHEMA_VERSION}; {remedy}")
    fields.check_own_sha256()
    return fields


def _optional_arrays(dimension: int, count: int) -> dict[str, tuple[str, tuple[int | None, ...]]]:
    """Return the dtype and shape of each array that only some indexes have."""
    return {"signs.npy": ("<u8", (count, (dimension + 63) // 64)), "centroids.npy": ("<f4", (None, dimension))}


def _check_encoder(folder: Path, built_by: EncoderIdentity, given: EncoderIdentity) -> None:
    if not built_by.is_comparable(given):
        others = "" if built_by.space is None else f" or another one of the space {built_by.space}"
        raise InputError(
            f"{folder} was built by the encoder {built_by}, and {given} is given; expected the encoder that built it"
            f"{others}: pass that one, or build the index again"
        )


def _check_files(
    folder: Path, fields: JsonFields, required: set[str], optional: Collection[str], *, verify: bool
) -> set[str]:
    """Return the names of the files, after comparing them with their records."""
    records = [FileRecord.parse(file) for file in fields.children("files")]
    names = {record.name for record in records}
    if len(names) < len(records) or not required <= names <= required.union(optional):
        raise fields.field_error("files", f"{', '.join(sorted(required))}, each once")
    for record in records:
        if (difference := record.difference(folder) if verify else record.size_difference(folder)) is not None:
            raise InputError(f"{folder} is damaged: {difference}; build the index again")
    return names


def _read_documents(path: Path, fields: JsonFields) -> DocumentTable:
    try:
        with path.open(encoding="utf-8") as file:
            batch = _document_batch(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} does not hold one document per line: {error}; build the index again") from error
    if len(batch.texts) != (count := fields.integer("documents")):
        raise InputError(f"{path} has {len(batch.texts)} lines, expected {count}; build the index again")
    table = DocumentTable.empty().append(batch)
    if (next_id := fields.integer("next_id")) < table.next_id:
        raise fields.field_error("next_id", f"an integer above all ids, at least {table.next_id}")
    return table.with_next_id(next_id)


def _document_batch(lines: Iterable[str]) -> DocumentBatch:
    texts, ids, metadata = [], [], []
    for number, line in enumerate(lines, 1):
        document = json.loads(line)
        if not isinstance(document, dict) or document.keys() != _DOCUMENT_FIELDS:
            raise InputError(f"line {number} is not an object with the fields id, text and metadata")
        texts.append(document["text"])
        ids.append(document["id"])
        metadata.append(NO_METADATA if document["metadata"] == {} else document["metadata"])
    is_default = all(type(each) is int and each == position for position, each in enumerate(ids))
    return DocumentBatch.validate(texts, None if is_default else ids, metadata)


def _read_passages(path: Path, count: int, table: DocumentTable) -> npt.NDArray[np.int32]:
    passages: npt.NDArray[np.int32] = np.array(MappedArrays().map(path, PASSAGE_DTYPE, (count, 3)))
    documents, starts, ends = passages.T
    lengths = np.fromiter(map(len, table.texts()), dtype=np.int64, count=len(table))
    is_valid = (
        (documents >= 0).all()
        and (documents < len(table)).all()
        and (np.bincount(documents, minlength=len(table)) > 0).all()
        and ((starts >= 0) & (starts <= ends) & (ends <= lengths[documents])).all()
    )
    if not is_valid:
        raise InputError(f"{path} does not hold passages of the documents; build the index again")
    return passages
