"""Documents and their embeddings in a folder of Parquet files, read batch by batch.

Importing this module raises MissingExtraError if pyarrow is not installed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.errors import InputError, MissingExtraError, one_line, short_repr
from edgeembed_runtime.store_manifest import STORE_MANIFEST, StoreManifest

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from pyarrow import types
except ModuleNotFoundError as error:
    raise MissingExtraError("pyarrow", "parquet", "edgeembed-runtime") from error

_TEXT = "text"
_EMBEDDING = "embedding"
_BATCH_ROWS = 4096
# Columns are read piece by piece: otherwise pyarrow reads those of a whole row group, which may have a million rows.
_BUFFER_BYTES = 1 << 20
# Spark writes into this folder, and removes it at the end of the job.
_UNFINISHED = "_temporary"
_MAX_SHOWN_COLUMNS = 10
_MAX_ID = (1 << 63) - 1


class ParquetBatch(NamedTuple):
    """Some consecutive documents of a Parquet file, not validated.

    Attributes:
        where: The file and the first row, for messages.
        texts: The texts.
        ids: The id of each document; None if no column has ids.
        metadata: The metadata of each document; None if there is none.
        embeddings: (documents, dimension) numbers.
    """

    where: str
    texts: list[Any]
    ids: list[Any] | None
    metadata: list[dict[str, Any]] | None
    embeddings: npt.NDArray[Any]


class ParquetDocuments:
    """The documents in the Parquet files of a folder, in the order of manifest.json or else of the files' names.

    Files, columns and the uniqueness of ids are checked here, and each document when it is read.

    Args:
        folder: The folder.
        dimension: The dimension of the embeddings.
        id_column: The column with the ids; None if the documents have none.
        metadata_columns: The columns with metadata.

    Attributes:
        folder: The same.
        encoded_by: The model that the embeddings are from; None if there is no manifest.json to tell.
        count: The number of documents.

    Raises:
        InputError: If the folder is not complete or holds no documents, a file cannot be read, a column is missing or
            of another type, or an id is there twice.
    """

    def __init__(
        self, folder: Path, dimension: int, id_column: str | None = None, metadata_columns: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self._dimension = dimension
        self._id_column = id_column
        self._metadata_columns = list(metadata_columns)
        self.encoded_by, self._files = _find_files(folder)
        self.count = sum(self._checked_rows(file, count) for file, count in self._files.items())
        if self.count == 0:
            raise InputError(f"the Parquet files in {folder} have no rows, expected at least one document")
        if id_column is not None:
            self._check_distinct_ids(id_column)

    def batches(self) -> Iterator[ParquetBatch]:
        """Yield the documents, a few thousand at a time.

        Raises:
            InputError: If a file cannot be read, or an embedding is missing or has another dimension.
        """
        columns = [_TEXT, _EMBEDDING, *self._metadata_columns]
        if self._id_column is not None:
            columns.append(self._id_column)
        for file in self._files:
            first = 0
            with _reading(file), _open(file) as opened:
                for rows in opened.iter_batches(_BATCH_ROWS, columns=list(dict.fromkeys(columns)), use_threads=False):
                    yield self._batch(rows, f"{file}, counted from row {first}")
                    first += rows.num_rows

    def _batch(self, rows: Any, where: str) -> ParquetBatch:
        names = self._metadata_columns
        values = [rows.column(name).to_pylist() for name in names]
        return ParquetBatch(
            where=where,
            texts=rows.column(_TEXT).to_pylist(),
            ids=None if self._id_column is None else rows.column(self._id_column).to_pylist(),
            metadata=[dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)] if names else None,
            embeddings=_embeddings(rows.column(_EMBEDDING), self._dimension, where),
        )

    def _checked_rows(self, file: Path, expected: int | None) -> int:
        """Return the number of rows of a file, after checking its columns."""
        with _reading(file), _open(file) as opened:
            rows, schema = int(opened.metadata.num_rows), opened.schema_arrow
        if expected not in (None, rows):
            raise InputError(
                f"{file} has {rows} rows, expected {expected} as in {STORE_MANIFEST}; encode the text again"
            )
        _check_column(file, schema, _TEXT, _is_string, "strings")
        _check_column(file, schema, _EMBEDDING, _is_list_of(_is_number), "lists of floats or of signed integers")
        if self._id_column is not None:
            _check_column(file, schema, self._id_column, _is_id, "integers or strings")
        for name in self._metadata_columns:
            _check_column(file, schema, name, _is_metadata, "strings, numbers, bools or lists of these")
        return rows

    def _check_distinct_ids(self, name: str) -> None:
        """Raise InputError if an id is there twice. This reads the whole column, but nothing else."""
        columns = {file: self._read_ids(file, name) for file in self._files}
        first = next(iter(columns.values()))
        for file, ids in columns.items():
            if ids.type != first.type:
                given = "integers" if types.is_integer(ids.type) else "strings"
                raise InputError(
                    f"the column {name} of {file} has {given}, unlike that of the first file; expected one type: "
                    "convert it"
                )
        counts = pc.value_counts(pa.chunked_array([chunk for ids in columns.values() for chunk in ids.chunks]))
        twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        if len(twice):
            raise InputError(
                f"the id {short_repr(twice[0].as_py())} is twice in the column {name} of {self.folder}, expected a "
                "different id for each document"
            )

    def _read_ids(self, file: Path, name: str) -> Any:
        with _reading(file), _open(file) as opened:
            ids = opened.read([name], use_threads=False).column(0)
            _check_ids(ids, f"the column {one_line(name)} of {file}")
            # Files may differ in the width of integers.
            return ids.cast(pa.int64() if types.is_integer(ids.type) else pa.large_string())


def _check_ids(ids: Any, column: str) -> None:
    """Raise InputError if an id is null, or an integer that a signed one of 64 bits cannot hold."""
    expected = "expected a str or a signed integer of at most 64 bits"
    if ids.null_count:
        row = pc.index(ids.is_null(), True).as_py()
        raise InputError(f"{column}, row {row} from 0: the id is null, {expected}; give each row an id")
    if types.is_uint64(ids.type):
        row = pc.index(pc.greater(ids, pa.scalar(_MAX_ID, pa.uint64())), True).as_py()
        if row >= 0:
            raise InputError(f"{column}, row {row} from 0: the id is {ids[row]}, {expected}; choose another id")


def _find_files(folder: Path) -> tuple[EncoderIdentity | None, dict[Path, int | None]]:
    """Return the model if it is known, and the files with their numbers of rows, as far as these are known."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder, expected one with Parquet files of texts and embeddings")
    manifest = StoreManifest.read(folder)
    if manifest is not None:
        return manifest.encoder.identity, dict(manifest.complete_files(folder))
    if (folder / _UNFINISHED).exists():
        raise InputError(
            f"{folder} is incomplete: it holds the folder {_UNFINISHED} of a job that did not end; run the job again"
        )
    files = sorted(file for file in folder.glob("*.parquet") if not file.name.startswith((".", "_")))
    if not files:
        raise InputError(
            f"{folder} holds neither {STORE_MANIFEST} nor *.parquet; expected what edgeembed encode writes, or "
            f"Parquet files with the columns {_TEXT} and {_EMBEDDING}"
        )
    return None, dict.fromkeys(files)


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Convert pyarrow's errors about a file into InputError."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(
            f"cannot read {file}: {one_line(str(error))}; expected a Parquet file: write it again"
        ) from error


def _open(file: Path) -> Any:
    # Opened as bytes, because pyarrow takes a name such as s3:x for a URL, and reads no name that is not UTF-8.
    return pq.ParquetFile(pa.OSFile(os.fsencode(file)), buffer_size=_BUFFER_BYTES, pre_buffer=False)


def _embeddings(column: Any, dimension: int, where: str) -> npt.NDArray[Any]:
    """Return lists as an array, (rows, dimension); a null in a list becomes NaN."""
    lengths = pc.list_value_length(column).fill_null(-1).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != dimension)
    if len(wrong):
        length = lengths[wrong[0]]
        given = "null" if length < 0 else f"a list of {length} numbers"
        raise InputError(f"{where}: embedding {wrong[0]} is {given}, expected {dimension} numbers as of the encoder")
    values: npt.NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), dimension)


def _check_column(file: Path, schema: Any, name: str, is_valid: Callable[[Any], bool], expected: str) -> None:
    if schema.names.count(name) != 1:
        shown = ", ".join(schema.names[:_MAX_SHOWN_COLUMNS])
        raise InputError(f"{file} has the columns {one_line(shown)}; expected one called {one_line(name)}")
    kind = schema.field(name).type
    if not is_valid(kind):
        raise InputError(
            f"the column {name} of {file} has the type {one_line(str(kind))}, expected {expected}; convert it"
        )


def _is_string(kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_id(kind: Any) -> bool:
    return _is_string(kind) or bool(types.is_integer(kind))


def _is_number(kind: Any) -> bool:
    return bool(types.is_floating(kind) or types.is_signed_integer(kind))


def _is_scalar(kind: Any) -> bool:
    return _is_id(kind) or bool(types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind))


def _is_list_of(is_item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def is_valid(kind: Any) -> bool:
        is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        return bool(is_list) and is_item(kind.value_type)

    return is_valid


def _is_metadata(kind: Any) -> bool:
    return _is_scalar(kind) or _is_list_of(_is_scalar)(kind)
