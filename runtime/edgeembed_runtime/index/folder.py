"""An index as a folder: open formats, and index.json that says what is in them.

    index.json        the encoder's fingerprint, precision, engine, and name, size and SHA-256 of every other file
    documents.jsonl   a text a line, as JSON
    vectors.npy       (documents, dimension), of unit length but for rounding; int8 has a scale of its own each row
    numbers.npy       (documents,) int64: the number that each document got when it was added, ascending
    signs.npy         precision binary: the signs of the vectors, 64 a word
    centroids.npy     engine faiss-ivf: the middles of the lists
    neighbours.npy    engine faiss-hnsw: the graph

Schema version 1 is an index of float32, whose numbers are 0, 1, 2 and so on, searched by the engine numpy.
"""

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.array_files import map_array, write_array
from edgeembed_runtime.index.finders import Arrays
from edgeembed_runtime.index.settings import INDEX_PRECISIONS, Engine, IndexPrecision
from edgeembed_runtime.index.stored_vectors import STORED_TYPES
from edgeembed_runtime.storage.fields import Fields
from edgeembed_runtime.storage.reading import is_file
from edgeembed_runtime.storage.records import FileRecord
from edgeembed_runtime.texts import as_texts

INDEX_MANIFEST = "index.json"
_SCHEMA_VERSION = 2
_DOCUMENTS = "documents.jsonl"
_VECTORS = "vectors.npy"
_NUMBERS = "numbers.npy"
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
    """

    precision: IndexPrecision
    engine: Engine
    documents: list[str]
    numbers: npt.NDArray[np.int64]
    next_number: int
    vectors: npt.NDArray[Any]
    arrays: Arrays


def write_index(folder: Path, content: IndexContent, encoder: Encoder) -> None:
    """Write an index into an empty folder.

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
        "files": [FileRecord.of(folder, path.name).to_json() for path in sorted(folder.iterdir())],
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (folder / INDEX_MANIFEST).write_text(text, encoding="utf-8")


def read_index(folder: Path, encoder: Encoder, *, verify: bool) -> IndexContent:
    """Give the index in a folder, its arrays mapped into memory. All of it is of one index, even if it is replaced.

    Args:
        folder: The folder.
        encoder: The one that is to have built it.
        verify: Whether to compare every file's bytes with its checksum; it reads them all. Sizes are compared in
            any case.

    Raises:
        InputError: If the folder is no index, is damaged, or was built by another encoder.
    """
    for _ in range(_ATTEMPTS):
        with _held(folder / INDEX_MANIFEST) as held:
            try:
                content = _read_once(folder, encoder, verify=verify)
            except (InputError, OSError, ValueError):  # the last two if a file vanishes or shrinks while it is read
                if _is_there(folder, held.fileno()):
                    raise
            else:
                if _is_there(folder, held.fileno()):
                    return content
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
    fields, is_old = _read_manifest(folder)
    _check_encoder(folder, fields.child("encoder"), encoder)
    precision: IndexPrecision = "float32" if is_old else fields.text("precision", INDEX_PRECISIONS)  # type: ignore[assignment]
    engine = Engine() if is_old else Engine.parse(fields.child("engine"))
    count = fields.whole("count")
    required = {_DOCUMENTS, _VECTORS} if is_old else {_DOCUMENTS, _VECTORS, _NUMBERS}
    optional = {} if is_old else _optional_arrays(encoder.dimension, count)
    listed = _check_files(folder, fields, required, optional, verify=verify)
    return IndexContent(
        precision=precision,
        engine=engine,
        documents=_read_documents(folder / _DOCUMENTS, count),
        numbers=np.arange(count, dtype=np.int64) if is_old else _read_numbers(folder / _NUMBERS, fields),
        next_number=count if is_old else fields.whole("next_number"),
        vectors=map_array(folder / _VECTORS, STORED_TYPES[precision], (count, encoder.dimension)),
        arrays={Path(name).stem: map_array(folder / name, *optional[name]) for name in sorted(listed - required)},
    )


def _read_manifest(folder: Path) -> tuple[Fields, bool]:
    """Give what index.json says, and whether it is of the first version."""
    fields = Fields.read(folder / INDEX_MANIFEST)
    version = fields.whole("schema_version")
    if version not in (1, _SCHEMA_VERSION):
        raise InputError(
            f"{folder} has schema version {version}, expected at most {_SCHEMA_VERSION}; "
            "upgrade edgeembed-runtime or build the index again"
        )
    return fields, version == 1


def _optional_arrays(dimension: int, count: int) -> dict[str, tuple[str, tuple[int | None, ...]]]:
    """Give the type and shape of each array that not every index has."""
    return {
        "signs.npy": ("<u8", (count, (dimension + 63) // 64)),
        "centroids.npy": ("<f4", (None, dimension)),
        "neighbours.npy": ("<i4", (None,)),
    }


def _check_encoder(folder: Path, built_by: Fields, encoder: Encoder) -> None:
    built, given = built_by.text("fingerprint"), encoder.bundle.fingerprint
    if built != given:
        raise InputError(
            f"{folder} was built by the encoder {built_by.text('name')!r} ({built[:12]}), expected "
            f"{encoder.bundle.name!r} ({given[:12]}); give the one that built it, or build the index again"
        )


def _check_files(
    folder: Path, fields: Fields, required: set[str], optional: Collection[str], *, verify: bool
) -> set[str]:
    """Give the names of the files, once they are the ones that were written."""
    records = [FileRecord.parse(file) for file in fields.children("files")]
    names = {record.name for record in records}
    if len(names) < len(records) or not required <= names <= required.union(optional):
        raise fields.refuse("files", f"{', '.join(sorted(required))}, each once")
    for record in records:
        if (difference := record.difference(folder) if verify else record.size_difference(folder)) is not None:
            raise InputError(f"{folder} is damaged: {difference}; build the index again")
    return names


def _read_numbers(path: Path, fields: Fields) -> npt.NDArray[np.int64]:
    numbers = np.array(map_array(path, "<i8", (fields.whole("count"),)))
    limits = [-1, *numbers[:1], *numbers[-1:], min(fields.whole("next_number"), _MOST_NUMBERS)]
    if (np.diff(numbers) <= 0).any() or limits[0] >= limits[1] or limits[-2] >= limits[-1]:
        raise InputError(f"{path} does not hold ascending numbers below 'next_number'; build the index again")
    return numbers


def _read_documents(path: Path, count: int) -> list[str]:
    try:
        with path.open(encoding="utf-8") as file:
            documents = as_texts([json.loads(line) for line in file], "document")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not one text a line: {error}; build the index again") from error
    if len(documents) != count:
        raise InputError(f"{path} has {len(documents)} lines, expected {count}; build the index again")
    return documents
