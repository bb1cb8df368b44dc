"""Tables with a header, as tasks bring them: tab-separated, or CSV."""

from collections.abc import Sequence
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.tables import read_rows


def read_tsv(file: Path, required: Sequence[str], optional: Sequence[str], expected: str) -> list[dict[str, str]]:
    """Read the rows of a file by the names in its header.

    Args:
        file: A TSV or CSV file, as `read_rows` takes it, with a header.
        required: Columns that it must have.
        optional: Columns that it may have; all others are passed over.
        expected: How an error goes on: "expected ...".

    Returns:
        JsonFields by column, without spaces at either end; empty where a row is too short.

    Raises:
        InputError: If the file cannot be read, lacks a column, or a row has more fields than the header.
    """
    rows = read_rows(file)
    _, header = next(rows, (0, []))
    missing = [column for column in required if column not in header]
    if missing:
        raise InputError(f"{file} lacks the column {missing[0]}; {expected}")
    columns = {name: header.index(name) for name in (*required, *optional) if name in header}
    found = []
    for number, (_, fields) in enumerate(rows, start=1):
        if len(fields) > len(header):
            raise InputError(f"{file}, row {number} has more fields than the header; {expected}")
        padded = [*fields, *[""] * (len(header) - len(fields))]
        found.append({name: padded[index].strip() for name, index in columns.items()})
    return found
