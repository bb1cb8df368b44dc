"""Tables of text: TSV, CSV, JSON lines and Parquet, and the columns that are read by default."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.quoting import quoted_rows, tsv_rows

from edgeembed.corpus.remote import AnyPath, remote_errors
from edgeembed.corpus.streams import file_ending, read_lines

DEFAULT_COLUMNS = (
    "text",
    "sentence",
    "sentence1",
    "sentence2",
    "question",
    "answer",
    "query",
    "passage",
    "document",
    "premise",
    "hypothesis",
    "anchor",
    "positive",
    "negative",
    "title",
    "body",
    "abstract",
    "description",
    "definition",
)
"""Columns that are read if none are chosen: the usual names of text columns in public datasets."""


def read_jsonl(path: AnyPath, columns: Sequence[str]) -> Iterator[str]:
    """Yield the texts of a file with one JSON object a line.

    Args:
        path: A UTF-8 file, plain or compressed.
        columns: The keys to read, in this order. If empty, those of `DEFAULT_COLUMNS` that a line has.

    Raises:
        InputError: If a line is not a JSON object, lacks a key, or holds text that is not valid Unicode.
    """
    for number, line in read_lines(path):
        if line.strip():
            yield from _json_texts(path, number, line, columns)


def read_parquet(path: AnyPath, columns: Sequence[str]) -> Iterator[str]:
    """Yield the texts of a Parquet file, row by row.

    Args:
        path: A Parquet file.
        columns: The columns to read, in this order. If empty, those of `DEFAULT_COLUMNS` that the file has.

    Raises:
        InputError: If the file is not Parquet, lacks a column, or a column does not hold strings.
    """
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with remote_errors(path), path.open("rb") as raw, pyarrow.parquet.ParquetFile(raw) as file:
            chosen = choose_columns(path, file.schema_arrow.names, columns)
            _expect_strings(path, file.schema_arrow, chosen)
            for batch in file.iter_batches(batch_size=4096, columns=chosen):
                for row in zip(*(batch.column(name).to_pylist() for name in chosen), strict=True):
                    yield from (text for text in row if text is not None)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read as Parquet ({reason}); expected a complete Parquet file") from error


def choose_columns(where: AnyPath | str, available: Sequence[str], requested: Sequence[str]) -> list[str]:
    """Return the columns to read: the requested ones, or else those of `DEFAULT_COLUMNS` that exist.

    Args:
        where: The table's name, for error messages.
        available: The table's columns.
        requested: The columns that the caller wants. If empty, the default ones.

    Raises:
        InputError: If a requested column is missing, or none was requested and no default one exists.
    """
    chosen = list(requested) if requested else [name for name in available if name in DEFAULT_COLUMNS]
    missing = [name for name in chosen if name not in available]
    if missing or not chosen:
        given = f"no column {', '.join(missing)}" if missing else "no column with a usual name of text"
        raise InputError(
            f"{where} has {given}; its columns are {', '.join(available)}: choose with PATH#column1,column2"
        )
    return chosen


def _json_texts(path: AnyPath, number: int, line: str, columns: Sequence[str]) -> Iterator[str]:
    where = f"{path} line {number}"
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON ({error}); expected one JSON object a line") from error
    if not isinstance(row, dict):
        raise InputError(f"{where} holds a {type(row).__name__}; expected one JSON object a line")
    for name in choose_columns(where, list(row), columns):
        if row[name] is not None:
            yield _expect_text(f"{where} key {name}", row[name])


def _expect_text(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where} holds a {type(value).__name__}; expected text: choose with PATH#key1,key2")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where} holds a lone surrogate; expected valid Unicode: mend the row") from error
    return value


def _expect_strings(path: AnyPath, schema: Any, names: Sequence[str]) -> None:
    import pyarrow as pa

    for name in names:
        kind = schema.field(name).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise InputError(f"{path} column {name} holds {kind}; expected strings: choose with PATH#column1,column2")


def read_tsv(file: AnyPath, required: Sequence[str], optional: Sequence[str], expected: str) -> list[dict[str, str]]:
    """Return the rows of a TSV or CSV file as dictionaries.

    Args:
        file: A file with a header, see `read_rows`.
        required: Columns that the file must have.
        optional: Columns that the file may have. Other columns are ignored.
        expected: The end of an error message: "expected ...".

    Returns:
        One dictionary a row: the fields by column name, without white space at either end.

    Raises:
        InputError: If the file cannot be read or lacks a column, or a row does not have as many fields as the header.
    """
    rows = read_rows(file)
    _, header = next(rows, (0, []))
    missing = [column for column in required if column not in header]
    if missing:
        raise InputError(f"{file} lacks the column {missing[0]}; {expected}")
    columns = {name: header.index(name) for name in (*required, *optional) if name in header}
    return [{name: fields[index].strip() for name, index in columns.items()} for _, fields in rows]


def read_columns(path: AnyPath, columns: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield some columns of a TSV or CSV file, row by row.

    Args:
        path: A file with a header, see `read_rows`.
        columns: The columns in the order wanted. If empty, those of `DEFAULT_COLUMNS` that the
            header has.

    Yields:
        The number of the row's last line, from 1, and the fields.

    Raises:
        InputError: If the file cannot be read or lacks a column, or a row does not have as many fields as the header.
    """
    rows = read_rows(path)
    _, header = next(rows, (0, []))
    if not header:
        return
    indices = [header.index(name) for name in choose_columns(path, header, columns)]
    for number, fields in rows:
        yield number, tuple(fields[index] for index in indices)


def read_header(path: AnyPath) -> list[str]:
    """Return the column names of a TSV or CSV file; none if it is empty.

    Args:
        path: A file with a header, see `read_rows`.

    Raises:
        InputError: If the file cannot be read.
    """
    return next(read_rows(path), (0, []))[1]


def read_rows(path: AnyPath) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a TSV or CSV file, its header first. Blank lines are skipped.

    Args:
        path: A UTF-8 file, plain or compressed. One that ends in .csv (before .xz, .gz, .zst) is comma-separated and
            quoted as in RFC 4180: a quoted field may hold commas, doubled quotes and line breaks. Any other is
            tab-separated; `edgeembed_runtime.quoting.tsv_rows` says when it is quoted, too.

    Yields:
        The number of the row's first line, from 1, and its fields.

    Raises:
        InputError: If the file cannot be read, its quoting is broken, a field has more characters than
            `edgeembed_runtime.quoting.MAX_FIELD_CHARACTERS`, or a row does not have as many fields as the header.
    """
    name, lines = str(path), read_lines(path)
    rows = quoted_rows(name, lines, ",") if is_csv(path) else tsv_rows(name, lines)
    header: list[str] = []
    for number, fields in rows:
        header = header or fields
        if len(fields) != len(header):
            raise InputError(
                f"{path} line {number} has {len(fields)} {'comma' if is_csv(path) else 'tab'}-separated fields; "
                f"expected {len(header)} as in its header: mend the row"
            )
        yield number, fields


def is_csv(path: AnyPath) -> bool:
    """Return whether a file is CSV by its ending, compressed or not."""
    return file_ending(path) == ".csv"
