"""An index as a folder: open formats, and index.json that says what is in them.

    index.json        the encoder's fingerprint, precision, engine, the checksums of the other files, and its own
    documents.jsonl   a text a line, as JSON
    vectors.npy       (documents, dimension), of unit length but for rounding; int8 has a scale of its own each row
    numbers.npy       (documents,) int64: the number that each document got when it was added, ascending
    signs.npy         precision binary: the signs of the vectors, 64 a word
    centroids.npy     engine faiss-ivf: the centers of the lists
    neighbours.npy    engine faiss-hnsw: the graph

The checksum of index.json is the SHA-256 of its other fields, as `with_own_sha256` computes it.
"""

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._validation import validate_texts
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.engine import INDEX_PRECISIONS, Engine, IndexPrecision
from edgeembed_runtime.index.finders import Arrays
from edgeembed_runtime.index.npy import MappedArrays, write_array
from edgeembed_runtime.index.stored_vectors import STORED_TYPES
from edgeembed_runtime.storage.files import is_file, sha256, sha256_of
from edgeembed_runtime.storage.folder_kind import FileRecord, FolderKind
from edgeembed_runtime.storage.json_fields import JsonFields, with_own_sha256

INDEX_MANIFEST = "index.json"
INDEX_FOLDER = FolderKind(INDEX_MANIFEST, ("schema_version", "encoder", "count"))
_SCHEMA_VERSION = 3
_DOCUMENTS = "documents.jsonl"
_VECTORS = "vectors.npy"
_NUMBERS = "numbers.npy"
_REQUIRED = {_DOCUMENTS, _VECTORS, _NUMBERS}
# What is added behind it is still an int64.
_MOST_NUMBERS = 1 << 62
# Whoever replaces the folder writes it in between, which takes longer than reading it.
_ATTEMPTS = 10


@dataclass(frozen=True)
class IndexContent:
    """All that an index consists of, beside its encoder.

    Attributes:
        precision: That of the vectors.
        engine: How it is searched.
        documents: The texts.
        numbers: (documents,) int64, ascending.
        next_number: The number that the next document gets.
        vectors: (documents, dimension), as they are stored.
        arrays: What the engine need not compute again.
        mapped: The files that some of these are mapped from.
    """

    precision: IndexPrecision
    engine: Engine
    documents: list[str]
    numbers: npt.NDArray[np.int64]
    next_number: int
    vectors: npt.NDArray[Any]
    arrays: Arrays
    mapped: MappedArrays


def write_index(folder: Path, content: IndexContent, encoder: Encoder) -> str:
    """Write an index into an empty folder.

    Returns:
        What `index_state` returns for it.

    Raises:
        OSError: If there is no room for it, for example.
    """
    with (folder / _DOCUMENTS).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(document, ensure_ascii=False) + "\n" for document in content.documents)
    write_array(folder / _VECTORS, content.vectors)
    write_array(folder / _NUMBERS, content.numbers)
    for name, array in content.arrays.items():
        write_array(folder / f"{name}.npy", array)
    manifest = {
        "schema_version": _SCHEMA_VERSION,
        "encoder": {"name": encoder.bundle.name, "fingerprint": encoder.bundle.fingerprint},
        "count": len(content.documents),
        "next_number": content.next_number,
        "dimension": encoder.dimension,
        "precision": content.precision,
        "engine": content.engine.to_json(),
        "files": INDEX_FOLDER.records(folder),
    }
    text = json.dumps(with_own_sha256(manifest), indent=2, ensure_ascii=False) + "\n"
    (folder / INDEX_MANIFEST).write_text(text, encoding="utf-8", newline="\n")
    return sha256_of(text.encode())


def index_state(folder: Path) -> str | None:
    """Return what differs between any two contents of an index, the SHA-256 of index.json; None where there is none.

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
    """Read the index in a folder, its arrays mapped into memory. All of it is of one index, even if it is replaced.

    Args:
        folder: The folder.
        encoder: The encoder that must have built it.
        verify: Whether to compare every file's bytes with its checksum, which reads them all. Sizes and the checksum of
            index.json are compared in any case.

    Returns:
        The index, and what `index_state` returned for it.

    Raises:
        InputError: If the folder is no index, is damaged, or was built by another encoder.
    """
    for _ in range(_ATTEMPTS):
        with _held(folder / INDEX_MANIFEST) as held:
            try:
                content, state = _read_once(folder, encoder, verify=verify), sha256_of(held.read())
            except (InputError, OSError, ValueError):  # the last two if a file vanishes or shrinks while it is read
                if _is_there(folder, held.fileno()):
                    raise
            else:
                if _is_there(folder, held.fileno()):
                    return content, state
    raise InputError(f"{folder} was replaced {_ATTEMPTS} times while it was read; open it once it stays the same")


def _held(manifest: Path) -> BinaryIO:
    """Give the open file, for which no other can be taken while it is open."""
    if not is_file(manifest):
        raise InputError(f"{manifest.parent} holds no {manifest.name}; expected an index, as Index.save writes it")
    try:
        return manifest.open("rb")
    except OSError as error:
        raise InputError(f"cannot read {manifest}: {error.strerror}; expected a readable file") from error


def _is_there(folder: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), (folder / INDEX_MANIFEST).stat())
    except OSError:
        return False


def _read_once(folder: Path, encoder: Encoder, *, verify: bool) -> IndexContent:
    fields = _read_manifest(folder)
    _check_encoder(folder, fields.child("encoder"), encoder)
    precision: IndexPrecision = fields.string("precision", INDEX_PRECISIONS)  # type: ignore[assignment]
    count = fields.integer("count")
    optional = _optional_arrays(encoder.dimension, count)
    listed = _check_files(folder, fields, _REQUIRED, optional, verify=verify)
    mapped = MappedArrays()
    return IndexContent(
        precision=precision,
        engine=Engine.parse(fields.child("engine")),
        documents=_read_documents(folder / _DOCUMENTS, count),
        numbers=_read_numbers(folder / _NUMBERS, fields),
        next_number=fields.integer("next_number"),
        vectors=mapped.map(folder / _VECTORS, STORED_TYPES[precision], (count, encoder.dimension)),
        arrays={Path(name).stem: mapped.map(folder / name, *optional[name]) for name in sorted(listed - _REQUIRED)},
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
    """Give the type and shape of each array that not every index has."""
    return {
        "signs.npy": ("<u8", (count, (dimension + 63) // 64)),
        "centroids.npy": ("<f4", (None, dimension)),
        "neighbours.npy": ("<i4", (None,)),
    }


def _check_encoder(folder: Path, built_by: JsonFields, encoder: Encoder) -> None:
    built, given = built_by.string("fingerprint"), encoder.bundle.fingerprint
    if built != given:
        raise InputError(
            f"{folder} was built by the encoder {built_by.string('name')!r} ({built[:12]}), expected "
            f"{encoder.bundle.name!r} ({given[:12]}); give the one that built it, or build the index again"
        )


def _check_files(
    folder: Path, fields: JsonFields, required: set[str], optional: Collection[str], *, verify: bool
) -> set[str]:
    """Give the names of the files, once they are the ones that were written."""
    records = [FileRecord.parse(file) for file in fields.children("files")]
    names = {record.name for record in records}
    if len(names) < len(records) or not required <= names <= required.union(optional):
        raise fields.field_error("files", f"{', '.join(sorted(required))}, each once")
    for record in records:
        if (difference := record.difference(folder) if verify else record.size_difference(folder)) is not None:
            raise InputError(f"{folder} is damaged: {difference}; build the index again")
    return names


def _read_numbers(path: Path, fields: JsonFields) -> npt.NDArray[np.int64]:
    numbers = np.array(MappedArrays().map(path, "<i8", (fields.integer("count"),)))
    limits = [-1, *numbers[:1], *numbers[-1:], min(fields.integer("next_number"), _MOST_NUMBERS)]
    if (np.diff(numbers) <= 0).any() or limits[0] >= limits[1] or limits[-2] >= limits[-1]:
        raise InputError(f"{path} does not hold ascending numbers below 'next_number'; build the index again")
    return numbers


def _read_documents(path: Path, count: int) -> list[str]:
    try:
        with path.open(encoding="utf-8") as file:
            documents = validate_texts([json.loads(line) for line in file], "document")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not one text a line: {error}; build the index again") from error
    if len(documents) != count:
        raise InputError(f"{path} has {len(documents)} lines, expected {count}; build the index again")
    return documents
