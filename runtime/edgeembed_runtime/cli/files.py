"""Texts and documents in a file or on stdin: lines, JSON lines, JSON, CSV and TSV."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.quoting import quoted_rows, tsv_rows

_FIELDS = ("text", "id", "metadata")
_EXPECTED = (
    'expected an object such as {"id": "a", "text": "...", "metadata": {"year": 2020}}, of which only text is needed'
)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Files that were joined have one at the start of a later line.
_MARKS = re.compile("^\ufeff+", re.MULTILINE)
_MAX_SHOWN_NAMES = 10


class Entry(NamedTuple):
    """A text or document, and where it is.

    Attributes:
        where: The file and the line, for messages.
        fields: The text, and the id and metadata if it has any. Only the text is validated.
    """

    where: str
    fields: dict[str, Any]


def read_lines(name: str) -> list[str]:
    """Return the lines of a UTF-8 file, or of stdin if its name is "-". Byte order marks are dropped.

    Raises:
        InputError: If it cannot be read, or is not text in UTF-8.
    """
    return _split_lines(_read(name))


def read_entries(name: str) -> list[Entry]:
    """Return the texts or documents of a file, or of stdin if its name is "-".

    The ending says what the file holds. In .jsonl and .ndjson, each line is an object with the fields text, id and
    metadata; .json is a list of such objects, or of texts. A .csv or .tsv has a header with a column text; the column
    id has the ids, and the others are metadata. Another file, and stdin, has one text per line.

    Raises:
        InputError: If it cannot be read, or does not hold what its ending says.
    """
    text, where = _read(name), "stdin" if name == "-" else name
    match name.lower().rpartition(".")[2]:
        case "jsonl" | "ndjson":
            return list(_json_lines(text, where))
        case "json":
            return list(_json_list(text, where))
        case "csv":
            return list(_table(text, where, is_csv=True))
        case "tsv":
            return list(_table(text, where, is_csv=False))
        case _:
            return [Entry(f"{where}, line {number}", {"text": line}) for number, line in _numbered_lines(text)]


def _read(name: str) -> str:
    if name == "-":
        if sys.stdin is None:
            raise InputError("stdin is closed, expected texts to read; leave it open or pass a FILE")
        return _decode(sys.stdin.buffer.read(), "stdin")
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        expected = "a file with one text per line, - for stdin, or --text TEXT"
        raise InputError(f"cannot read {name}: {error.strerror}; expected {expected}") from error
    return _decode(data, name)


def _decode(data: bytes, where: str) -> str:
    if data.startswith(_UTF16_MARKS):
        raise InputError(f"{where} is UTF-16, expected UTF-8 text; save it as UTF-8")
    if b"\0" in data:
        place = _place(data, data.index(b"\0"), where)
        raise InputError(f"{place} is NUL, as in UTF-16 and in binary files, expected UTF-8 text; save it as UTF-8")
    try:
        return _MARKS.sub("", data.decode())
    except UnicodeDecodeError as error:
        place = _place(data, error.start, where)
        raise InputError(f"{place} is not valid UTF-8, expected UTF-8 text; save it as UTF-8") from error


def _place(data: bytes, position: int, where: str) -> str:
    line, byte = data.count(b"\n", 0, position) + 1, position - data.rfind(b"\n", 0, position)
    return f"{where}, line {line}: byte {byte}"


def _split_lines(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    return enumerate(_split_lines(text), 1)


def _json_lines(text: str, where: str) -> Iterator[Entry]:
    for number, line in _numbered_lines(text):
        if line.strip():
            place = f"{where}, line {number}"
            yield _document(_parse(line, place, _EXPECTED), place)


def _json_list(text: str, where: str) -> Iterator[Entry]:
    expected = "expected a list of texts or of documents; call a file with one object per line .jsonl"
    documents = _parse(text, where, expected)
    if not isinstance(documents, list):
        raise InputError(f"{where} is {short_repr(documents)}, {expected}")
    for number, document in enumerate(documents, 1):
        yield _document({"text": document} if isinstance(document, str) else document, f"{where}, entry {number}")


def _parse(text: str, where: str, expected: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid JSON ({error}), {expected}") from error


def _document(fields: Any, where: str) -> Entry:
    if not isinstance(fields, dict):
        raise InputError(f"{where} is {short_repr(fields)}, {_EXPECTED}")
    if "text" not in fields:
        raise InputError(f"{where} has {_listed('key', list(fields))}, {_EXPECTED}")
    text, unknown = fields["text"], [key for key in fields if key not in _FIELDS]
    if not isinstance(text, str):
        raise InputError(f"{where}: the text is {short_repr(text)}, {_EXPECTED}")
    if unknown:
        raise InputError(
            f"{where} has {_listed('key', unknown)}, expected only text, id and metadata; move the rest into metadata"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: the text contains a lone surrogate, expected valid Unicode; remove it") from error
    return Entry(where, fields)


def _table(text: str, where: str, *, is_csv: bool) -> Iterator[Entry]:
    lines = iter(_numbered_lines(text))
    rows = quoted_rows(where, lines, ",") if is_csv else tsv_rows(where, lines)
    _, header = next(rows, (0, ["text"]))
    if header.count("text") != 1:
        raise InputError(
            f"{where} has {_listed('column', header)}, expected one called text in the header; rename a column, or "
            "pass a .txt with one text per line"
        )
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{where} has the column {short_repr(twice)} twice, expected it once; rename one")
    for number, fields in rows:
        place = f"{where}, line {number}"
        if len(fields) != len(header):
            raise InputError(f"{place} has {len(fields)} fields, expected {len(header)} as in the header; mend the row")
        metadata = dict(zip(header, fields, strict=True))
        document: dict[str, Any] = {"text": metadata.pop("text")}
        if each := metadata.pop("id", ""):
            document["id"] = each
        yield Entry(place, document | ({"metadata": metadata} if metadata else {}))


def _listed(noun: str, names: list[str]) -> str:
    """Return names as part of a message, the first of them if there are many."""
    if not names:
        return f"no {noun}s"
    shown = [short_repr(name) for name in names[:_MAX_SHOWN_NAMES]] + ["..."] * (len(names) > _MAX_SHOWN_NAMES)
    return f"the {noun}{'s' * (len(names) > 1)} {', '.join(shown)}"
