"""Documents and their vectors, in memory or in a folder."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.fields import Fields
from edgeembed_runtime.files import new_folder
from edgeembed_runtime.hits import Hit, best_hits, check_count
from edgeembed_runtime.records import FileRecord
from edgeembed_runtime.texts import as_texts

SCHEMA_VERSION = 1
_MANIFEST = "index.json"
_VECTORS = "vectors.npy"
_DOCUMENTS = "documents.jsonl"


class Index:
    """Documents that can be searched; `Index.build` and `Index.open` make one.

    Args:
        encoder: What gave the vectors, and gives those of queries.
        documents: The texts.
        vectors: (documents, dimension) float32, of unit length.
    """

    def __init__(self, encoder: Encoder, documents: list[str], vectors: npt.NDArray[np.float32]) -> None:
        self._encoder = encoder
        self._documents = documents
        self._vectors = vectors

    @classmethod
    def build(cls, encoder: Encoder, documents: Iterable[str], *, show_progress_bar: bool = False) -> "Index":
        """Give an index of documents.

        Args:
            encoder: What gives the vectors.
            documents: The texts.
            show_progress_bar: Whether to count on stderr, if it is a terminal, once two seconds have passed.

        Raises:
            InputError: If a document is no text.
        """
        texts = as_texts(documents, "document")
        return cls(encoder, texts, encoder.encode_document(texts, show_progress_bar=show_progress_bar))

    @classmethod
    def open(cls, path: str | os.PathLike[str], encoder: Encoder | None = None) -> "Index":
        """Give the index that was saved in a folder, its vectors mapped into memory rather than read.

        Args:
            path: The folder.
            encoder: The encoder that built it; None, the default, stands for the one inside the wheel.

        Raises:
            InputError: If the folder is no index, is damaged, or was built by another encoder.
        """
        folder = Path(path)
        fields = _read(folder)
        own = Encoder() if encoder is None else encoder
        _check_encoder(folder, fields.child("encoder"), own)
        _check_files(folder, fields)
        count = fields.whole("count")
        vectors = _load_vectors(folder, (count, own.dimension))
        return cls(own, _load_documents(folder, count), vectors)

    def __len__(self) -> int:
        """Give the number of documents."""
        return len(self._documents)

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """Give the documents nearest to a query, best first; of equally near ones the earlier first.

        Args:
            query: What is looked for.
            k: How many hits to give at most.

        Raises:
            InputError: If the query is no text, or `k` is below 1.
        """
        check_count(k)
        wanted = self._encoder.encode_query(as_texts([query], "query")[0])
        return best_hits(self._vectors, wanted, self._documents, k)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the index to a folder, whole or not at all.

        Args:
            path: Where the folder is to appear.
            force: Whether an index that is there may be replaced; anything else that is there never is.

        Raises:
            InputError: If `path` exists and may not be replaced, or cannot be written.
        """
        with new_folder(Path(path), force=force, marker=_MANIFEST) as folder:
            np.save(folder / _VECTORS, self._vectors, allow_pickle=False)
            lines = (json.dumps(document, ensure_ascii=False) + "\n" for document in self._documents)
            with (folder / _DOCUMENTS).open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)
            manifest = json.dumps(self._manifest(folder), indent=2, ensure_ascii=False)
            (folder / _MANIFEST).write_text(manifest + "\n", encoding="utf-8")

    def _manifest(self, folder: Path) -> dict[str, object]:
        bundle = self._encoder.bundle
        return {
            "schema_version": SCHEMA_VERSION,
            "encoder": {"name": bundle.name, "fingerprint": bundle.fingerprint},
            "count": len(self),
            "dimension": bundle.dimension,
            "files": [FileRecord.of(folder, name).to_json() for name in (_VECTORS, _DOCUMENTS)],
        }


def _read(folder: Path) -> Fields:
    if not (folder / _MANIFEST).is_file():
        raise InputError(f"{folder} holds no {_MANIFEST}; expected an index, as Index.save writes it")
    fields = Fields.read(folder / _MANIFEST)
    if (version := fields.whole("schema_version")) != SCHEMA_VERSION:
        raise InputError(
            f"{folder} has schema version {version}, expected {SCHEMA_VERSION}; "
            "upgrade edgeembed-runtime or build the index again"
        )
    return fields


def _check_encoder(folder: Path, built_by: Fields, encoder: Encoder) -> None:
    built, given = built_by.text("fingerprint"), encoder.bundle.fingerprint
    if built != given:
        raise InputError(
            f"{folder} was built by the encoder {built_by.text('name')!r} ({built[:12]}), expected "
            f"{encoder.bundle.name!r} ({given[:12]}); give the one that built it, or build the index again"
        )


def _check_files(folder: Path, fields: Fields) -> None:
    records = [FileRecord.parse(file) for file in fields.children("files")]
    if sorted(record.name for record in records) != sorted((_VECTORS, _DOCUMENTS)):
        raise fields.refuse("files", f"{_VECTORS} and {_DOCUMENTS}")
    for record in records:
        if (difference := record.difference(folder)) is not None:
            raise InputError(f"{folder} is damaged: {difference}; build the index again")


def _load_vectors(folder: Path, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    path = folder / _VECTORS
    try:
        # A file of no rows cannot be mapped.
        vectors: npt.NDArray[np.float32] = np.load(path, mmap_mode="r" if shape[0] else None, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} is no array: {error}; build the index again") from error
    if vectors.shape != shape or vectors.dtype != np.float32:
        given = f"{vectors.dtype} {vectors.shape}"
        raise InputError(f"{path} is {given}, expected float32 {shape}; build the index again")
    return vectors


def _load_documents(folder: Path, count: int) -> list[str]:
    path = folder / _DOCUMENTS
    try:
        with path.open(encoding="utf-8") as file:
            documents = as_texts([json.loads(line) for line in file], "document")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not one text a line: {error}; build the index again") from error
    if len(documents) != count:
        raise InputError(f"{path} has {len(documents)} lines, expected {count}; build the index again")
    return documents
