"""Tab-separated files with a header, as tasks bring them."""

import csv
from collections.abc import Sequence
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.streams import read_lines


def read_tsv(file: Path, required: Sequence[str], optional: Sequence[str], expected: str) -> list[dict[str, str]]:
    """Read the rows of a file by the names in its header.

    Args:
        file: UTF-8, tab-separated, no quoting, with a header; plain or compressed.
        required: Columns that it must have.
        optional: Columns that it may have; all others are passed over.
        expected: How an error goes on: "expected ...".

    Returns:
        Fields by column, without spaces at either end; empty where a row is too short.

    Raises:
        InputError: If the file cannot be read, lacks a column, or a row has more fields than the header.
    """
    lines = (line for _, line in read_lines(file))
    try:
        reader = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, restval="")
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"{file} cannot be read: {error}; {expected}") from error
    header = reader.fieldnames or []
    missing = [column for column in required if column not in header]
    if missing:
        raise InputError(f"{file} lacks the column {missing[0]}; {expected}")
    columns = [name for name in (*required, *optional) if name in header]
    for number, row in enumerate(rows, start=1):
        if reader.restkey in row:
            raise InputError(f"{file}, row {number} has more fields than the header; {expected}")
    return [{name: row[name].strip() for name in columns} for row in rows]
