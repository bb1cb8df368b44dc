"""Read and write the folder of an index.

    index.json        the encoder's fingerprint, precision, engine, size and SHA-256 of the other files, its own SHA-256
    documents.jsonl   one text per line, as JSON
    vectors.npy       (documents, dimension) in the index's precision; of unit norm except for rounding, int8 per row
    ids.npy           (documents,) int64, ascending
    signs.npy         precision binary: sign bits, 64 per word
    centroids.npy     engine faiss-ivf: the centroids of the lists

The SHA-256 of index.json covers its other fields, as `with_own_sha256` computes it.
"""

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._validation import validate_texts
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.candidates import Arrays
from edgeembed_runtime.index.engine import INDEX_PRECISIONS, Engine, IndexPrecision
from edgeembed_runtime.index.npy import MappedArrays, write_array
from edgeembed_runtime.index.rows import IndexRows
from edgeembed_runtime.index.vectors import STORED_DTYPES, GrowingArray, StoredVectors
from edgeembed_runtime.storage.files import is_file, sha256, sha256_of
from edgeembed_runtime.storage.folder_kind import FileRecord, FolderKind
from edgeembed_runtime.storage.json_fields import JsonFields, with_own_sha256

INDEX_MANIFEST = "index.json"
INDEX_FOLDER = FolderKind(INDEX_MANIFEST, ("schema_version", "encoder", "documents"))
_SCHEMA_VERSION = 4
_DOCUMENTS = "documents.jsonl"
_VECTORS = "vectors.npy"
_IDS = "ids.npy"
_REQUIRED = {_DOCUMENTS, _VECTORS, _IDS}
# Leaves room for the ids of documents that are added later.
_MAX_NEXT_ID = 1 << 62
# Writing a folder takes longer than reading it, so that a reader rarely needs a second attempt.
_MAX_ATTEMPTS = 10


@dataclass(frozen=True)
class IndexContent:
    """The content of an index's folder.

    Attributes:
        precision: The precision of the vectors.
        engine: The search engine.
        rows: The documents.
        arrays: Arrays of the search engine, by name.
        mapped: The files that the arrays are mapped from.
    """

    precision: IndexPrecision
    engine: Engine
    rows: IndexRows
    arrays: Arrays
    mapped: MappedArrays


def write_index(folder: Path, content: IndexContent, encoder: Encoder) -> str:
    """Write an index into an empty folder.

    Returns:
        The SHA-256 of index.json, as `index_state` returns it.

    Raises:
        OSError: If a file cannot be written, for example because the disk is full.
    """
    rows = content.rows
    with (folder / _DOCUMENTS).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(document, ensure_ascii=False) + "\n" for document in rows.documents[: len(rows)])
    write_array(folder / _VECTORS, rows.vectors.rows)
    write_array(folder / _IDS, rows.ids.rows)
    for name, array in content.arrays.items():
        write_array(folder / f"{name}.npy", array)
    manifest = {
        "schema_version": _SCHEMA_VERSION,
        "encoder": {"name": encoder.bundle.name, "fingerprint": encoder.bundle.fingerprint},
        "documents": len(rows),
        "next_id": rows.next_id,
        "dimension": encoder.dimension,
        "precision": content.precision,
        "engine": content.engine.to_json(),
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
        encoder: The encoder, which must be the one that built the index.
        verify: Whether to compare the SHA-256 of every file, which reads them all. File sizes and the SHA-256 of
            index.json are always compared.

    Returns:
        The index, and its `index_state`.

    Raises:
        InputError: If the folder is not an index, is damaged, or was built by another encoder.
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
    _check_encoder(folder, fields.child("encoder"), encoder)
    precision: IndexPrecision = fields.string("precision", INDEX_PRECISIONS)  # type: ignore[assignment]
    count = fields.integer("documents")
    optional = _optional_arrays(encoder.dimension, count)
    names = _check_files(folder, fields, _REQUIRED, optional, verify=verify)
    mapped = MappedArrays()
    vectors = mapped.map(folder / _VECTORS, STORED_DTYPES[precision], (count, encoder.dimension))
    return IndexContent(
        precision=precision,
        engine=Engine.parse(fields.child("engine")),
        rows=IndexRows(
            documents=_read_documents(folder / _DOCUMENTS, count),
            ids=GrowingArray(_read_ids(folder / _IDS, count, fields)),
            next_id=fields.integer("next_id"),
            vectors=StoredVectors(GrowingArray(vectors)),
        ),
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


def _check_encoder(folder: Path, built_by: JsonFields, encoder: Encoder) -> None:
    built, given = built_by.string("fingerprint"), encoder.bundle.fingerprint
    if built != given:
        raise InputError(
            f"{folder} was built by the encoder {built_by.string('name')!r} ({built[:12]}), expected "
            f"{encoder.bundle.name!r} ({given[:12]}); pass the one that built it, or build the index again"
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


def _read_ids(path: Path, count: int, fields: JsonFields) -> npt.NDArray[np.int64]:
    ids = np.array(MappedArrays().map(path, "<i8", (count,)))
    next_id = fields.integer("next_id", maximum=_MAX_NEXT_ID)
    if (np.diff(ids) <= 0).any() or any(not 0 <= i < next_id for i in (*ids[:1], *ids[-1:])):
        raise InputError(f"{path} does not hold ascending ids below 'next_id'; build the index again")
    return ids


def _read_documents(path: Path, count: int) -> list[str]:
    try:
        with path.open(encoding="utf-8") as file:
            documents = validate_texts([json.loads(line) for line in file], "document")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} does not hold one text per line: {error}; build the index again") from error
    if len(documents) != count:
        raise InputError(f"{path} has {len(documents)} lines, expected {count}; build the index again")
    return documents
