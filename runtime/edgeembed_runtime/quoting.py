"""Rows of tables whose fields are quoted: CSV files, and TSV files that a CSV writer wrote."""

import csv
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal

from edgeembed_runtime.errors import InputError

MAX_FIELD_CHARACTERS = 100_000_000
"""Limit of a quoted field, so that a quote that is never closed does not fill the memory with the rest of the file."""

_QUOTE = '"'
_Quotes = Literal["none", "plain", "open", "escaped", "ordinary"]

Line = tuple[int, str]
"""The number of a line, from 1, and its text without the line break."""

Row = tuple[int, list[str]]
"""The number of a row's first line, and its fields."""


def tsv_rows(name: str, lines: Iterator[Line]) -> Iterator[Row]:
    """Yield the rows of a TSV file; blank lines are skipped.

    The quotes of a TSV file are ordinary characters, unless it was written as CSV with tabs (pandas, Python's
    csv.writer, R with qmethod="double"). It was if all names in its header are in quotes, or if the first field that
    can tell is: one in quotes with doubled quotes inside, `"the ""best"" of all"`, or with a tab or a line break
    inside, so that its line or the next one lacks fields or has more. `"this field"` cannot tell, and `"this" one`
    tells that quotes are ordinary.

    Args:
        name: The file's name, for error messages.
        lines: Its lines.

    Raises:
        InputError: If the file is quoted and its quoting is broken.
    """
    ahead: deque[Line] = deque()
    header: list[str] = []
    quoted = None
    while line := ahead.popleft() if ahead else next(lines, None):
        number, text = line
        if not text:
            continue
        fields = text.split("\t")
        if quoted is None and _QUOTE in text:
            if not any(following for _, following in ahead):
                ahead += _until_text(lines)
            following = next((following.split("\t") for _, following in ahead if following), header)
            quoted = _is_quoted(fields, following, len(header)) if header else _is_quoted_header(fields)
            if quoted:
                yield from quoted_rows(name, chain([line], ahead, lines), "\t")
                return
        header = header or fields
        yield number, fields


def quoted_rows(name: str, lines: Iterable[Line], delimiter: str) -> Iterator[Row]:
    """Yield the rows of a table with quoted fields as in RFC 4180; blank lines are skipped.

    Args:
        name: The file's name, for error messages.
        lines: Its lines.
        delimiter: What separates fields.

    Raises:
        InputError: If the quoting is broken, or a field is too long.
    """
    number = 0

    def content() -> Iterator[str]:
        nonlocal number
        for number, line in lines:  # noqa: B007  # read below
            yield f"{line}\n"  # may be part of a quoted field

    csv.field_size_limit(MAX_FIELD_CHARACTERS)
    reader = csv.reader(content(), delimiter=delimiter, strict=True)
    while True:
        first = number + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise _broken(name, first, number, error, delimiter) from error
        if fields is None:
            return
        if fields:
            yield first, fields


def _broken(name: str, first: int, last: int, error: csv.Error, delimiter: str) -> InputError:
    if "field limit" in str(error):
        return InputError(
            f"{name}: a field of the row that begins in line {first} has more than {MAX_FIELD_CHARACTERS:,} "
            "characters; expected fewer, and a closing quote after each quoted field: mend the row"
        )
    where = f"line {first} is" if first == last else f"lines {first} to {last} are"
    kind, separators = ("CSV", "commas") if delimiter == "," else ("a quoted TSV", "tabs")
    return InputError(
        f"{name} {where} not {kind} ({error}); expected fields separated by {separators}, and quoted ones closed and "
        "with doubled quotes inside: mend the row"
    )


def _until_text(lines: Iterator[Line]) -> list[Line]:
    """Return the lines up to the first one that is not blank."""
    read = []
    for number, line in lines:
        read.append((number, line))
        if line:
            break
    return read


def _is_quoted_header(header: Sequence[str]) -> bool | None:
    """Return True if all names are quoted; None if that cannot be told."""
    return all(_quotes(name) in {"plain", "escaped"} for name in header) or None


def _is_quoted(fields: Sequence[str], following: Sequence[str], columns: int) -> bool | None:
    """Return whether the fields of a line show that a TSV file is quoted; None if they cannot tell.

    Args:
        fields: The fields of the line, split at tabs.
        following: Those of the next line with text.
        columns: The number of fields in the header.
    """
    found = {_quotes(field) for field in fields}
    if "open" in found and not len(fields) == len(following) == columns:
        return True
    if "ordinary" in found:
        return False
    return True if "escaped" in found else None


def _quotes(field: str) -> _Quotes:
    """Return how a field uses quotes.

    Returns:
        "none"; "plain" if it is in quotes and has none inside; "open" if it begins with a quote that is not closed;
        "escaped" if it is in quotes and those inside are doubled; otherwise "ordinary".
    """
    if _QUOTE not in field:
        return "none"
    if not field.startswith(_QUOTE):
        return "ordinary"
    content = field[1:]
    single = content.replace(_QUOTE * 2, "")
    if _QUOTE not in single:
        return "open"
    if single.find(_QUOTE) < len(single) - 1:
        return "ordinary"
    return "escaped" if _QUOTE * 2 in content[:-1] else "plain"
