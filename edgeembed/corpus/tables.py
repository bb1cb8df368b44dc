"""The text columns of tables: TSV, CSV, JSON lines and Parquet."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.streams import COMPRESSION_ENDINGS, read_lines

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
"""Columns that are read where no other are asked for: what public data sets call their text."""


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a TSV or CSV file, its header first; blank lines are skipped.

    Args:
        path: A UTF-8 file, plain or compressed. One that ends in .csv (before .xz, .gz, .zst) is comma-separated and
            quoted as in RFC 4180: a quoted field may hold commas, doubled quotes and line breaks. Any other is
            tab-separated, and quotes in it are ordinary characters.

    Yields:
        The number of the row's last line, from 1, and its fields.

    Raises:
        InputError: If the file cannot be read, or the quoting of a CSV file is broken.
    """
    if is_csv(path):
        yield from _csv_rows(path)
        return
    for number, line in read_lines(path):
        if line:
            yield number, line.split("\t")


def is_csv(path: Path) -> bool:
    """Return whether a file is CSV by its ending, compressed or not."""
    plain = path.with_suffix("") if path.suffix in COMPRESSION_ENDINGS else path
    return plain.suffix == ".csv"


def read_table(path: Path, columns: Sequence[str]) -> Iterator[str]:
    """Yield the texts of a TSV or CSV file with a header.

    Args:
        path: As for `read_rows`.
        columns: The columns to read, in this order; none: those of `DEFAULT_COLUMNS` that the header has.

    Raises:
        InputError: If the file cannot be read, no column fits, or a row has not as many fields as the header.
    """
    rows = read_rows(path)
    _, header = next(rows, (0, []))
    chosen = [header.index(name) for name in choose_columns(path, header, columns)] if header else []
    for number, fields in rows:
        if len(fields) != len(header):
            raise InputError(
                f"{path} line {number} has {len(fields)} {'comma' if is_csv(path) else 'tab'}-separated fields; "
                f"expected {len(header)} as in its header: mend the row"
            )
        yield from (fields[index] for index in chosen)


def read_jsonl(path: Path, columns: Sequence[str]) -> Iterator[str]:
    """Give the texts of a file with one JSON object a line.

    Args:
        path: The file, plain or compressed.
        columns: The keys to read, in this order; none: those of `DEFAULT_COLUMNS` that a line has.

    Raises:
        InputError: If a line is no JSON object, lacks the keys, or holds text that is not Unicode.
    """
    for number, line in read_lines(path):
        if line.strip():
            yield from _json_texts(path, number, line, columns)


def read_parquet(path: Path, columns: Sequence[str]) -> Iterator[str]:
    """Give the texts of a Parquet file, row by row.

    Args:
        path: The file.
        columns: The columns to read, in this order; none: those of `DEFAULT_COLUMNS` that the file has.

    Raises:
        InputError: If the file is not Parquet, no column fits, or a column holds no strings.
    """
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            chosen = choose_columns(path, file.schema_arrow.names, columns)
            _expect_strings(path, file.schema_arrow, chosen)
            for batch in file.iter_batches(batch_size=4096, columns=chosen):
                for row in zip(*(batch.column(name).to_pylist() for name in chosen), strict=True):
                    yield from (text for text in row if text is not None)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read as Parquet ({reason}); expected a whole Parquet file") from error


def choose_columns(where: Path | str, available: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Give the columns to read: those asked for, or else those of `DEFAULT_COLUMNS` that there are.

    Args:
        where: What errors call the table.
        available: The table's columns.
        asked: The columns that the caller wants; none: the default ones.

    Raises:
        InputError: If a column asked for is absent, or none was asked for and there is no default one.
    """
    chosen = list(asked) if asked else [name for name in available if name in DEFAULT_COLUMNS]
    missing = [name for name in chosen if name not in available]
    if missing or not chosen:
        given = f"no column {', '.join(missing)}" if missing else "no column that is known to hold text"
        raise InputError(
            f"{where} has {given}; its columns are {', '.join(available)}: choose with PATH#column1,column2"
        )
    return chosen


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    # The reader wants the line breaks, since they may be part of a quoted field.
    reader = csv.reader((f"{line}\n" for _, line in read_lines(path)), strict=True)
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f"{path} line {reader.line_num} is not CSV ({error}); expected fields separated by commas, and quotes "
                "within a quoted field doubled: mend the row"
            ) from error
        if fields is None:
            return
        if fields:
            yield reader.line_num, fields


def _json_texts(path: Path, number: int, line: str, columns: Sequence[str]) -> Iterator[str]:
    where = f"{path} line {number}"
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON ({error}); expected one JSON object a line") from error
    if not isinstance(row, dict):
        raise InputError(f"{where} holds a {type(row).__name__}; expected one JSON object a line")
    for name in choose_columns(where, list(row), columns):
        if row[name] is not None:
            yield _checked_text(f"{where} key {name}", row[name])


def _checked_text(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where} holds a {type(value).__name__}; expected text: choose with PATH#key1,key2")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where} holds half a surrogate pair; expected Unicode text: mend the row") from error
    return value


def _expect_strings(path: Path, schema: Any, names: Sequence[str]) -> None:
    import pyarrow as pa

    for name in names:
        kind = schema.field(name).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise InputError(f"{path} column {name} holds {kind}; expected strings: choose with PATH#column1,column2")
