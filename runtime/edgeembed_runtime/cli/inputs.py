"""What a command reads: texts, and documents with ids and metadata, from files, stdin and --text."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from edgeembed_runtime.characters import is_blank
from edgeembed_runtime.errors import InputError, short_repr

_SUFFIX = ".jsonl"
_FIELDS = {"text", "id", "metadata"}
_EXPECTED = (
    'expected an object such as {"id": "a", "text": "...", "metadata": {"year": 2020}}, of which only text is needed'
)


def read_texts(args: argparse.Namespace, *, allow_blank: bool = True) -> list[str]:
    """Return the texts of FILE... and --text, in this order.

    Args:
        args: The parsed arguments.
        allow_blank: Whether a text may be empty or whitespace. If not, empty lines at the end of a file are dropped.

    Raises:
        InputError: If there are no texts, a file cannot be read, or a text is blank and may not be.
    """
    if not args.files and not args.text:
        raise InputError("no texts were given, expected a FILE with one text per line, - for stdin, or --text TEXT")
    if not allow_blank and any(map(is_blank, args.text)):
        raise InputError("--text is blank, expected a text that is not blank; leave it out")
    texts: list[str] = []
    for name in args.files:
        texts += read_lines(name) if allow_blank else _without_blank(read_lines(name), name)
    if not texts and not args.text:
        raise InputError(f"{', '.join(args.files)}: the file has no text, expected one text per line")
    return [*texts, *args.text]


def read_lines(name: str) -> list[str]:
    """Return the lines of a UTF-8 file, or of stdin if its name is "-".

    Raises:
        InputError: If it cannot be read.
    """
    if name == "-" and sys.stdin is None:
        raise InputError("stdin is closed, expected texts to read; leave it open or pass a FILE")
    if name == "-":
        return list(_decode(sys.stdin.buffer, "stdin"))
    try:
        with Path(name).open("rb") as file:
            return list(_decode(file, name))
    except OSError as error:
        expected = "a file with one text per line, - for stdin, or --text TEXT"
        raise InputError(f"cannot read {name}: {error.strerror}; expected {expected}") from error


class GivenDocuments(NamedTuple):
    """The documents of a command.

    Attributes:
        texts: The texts.
        ids: The id of each document; None if none has one.
        metadata: The metadata of each document; empty for one without.
    """

    texts: list[str]
    ids: list[Any] | None
    metadata: list[Any]


def read_documents(args: argparse.Namespace) -> GivenDocuments:
    """Return the documents of FILE... and --text, in this order.

    A file whose name ends in .jsonl has one document per line, an object with the fields text, id and metadata; another
    file has one text per line.

    Raises:
        InputError: If there are no documents, a file cannot be read, a line is not a document, or some documents have
            an id and others do not.
    """
    if not args.files and not args.text:
        raise InputError("no texts were given, expected a FILE with one text per line, - for stdin, or --text TEXT")
    entries = [entry for name in args.files for entry in _read_file(name)]
    entries += [("--text", {"text": text}) for text in args.text]
    if not entries:
        raise InputError(f"{', '.join(args.files)}: the file has no text, expected one text per line")
    has_ids = any("id" in fields for _, fields in entries)
    for where, fields in entries:
        if has_ids and "id" not in fields:
            raise InputError(f"{where}: the document has no id but others have one; give all of them an id, or none")
    return GivenDocuments(
        texts=[fields["text"] for _, fields in entries],
        ids=[fields["id"] for _, fields in entries] if has_ids else None,
        metadata=[fields.get("metadata", {}) for _, fields in entries],
    )


def _without_blank(lines: list[str], name: str) -> list[str]:
    """Return the lines without empty ones at the end; raise InputError if another one is blank."""
    while lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        if is_blank(line):
            where = "stdin" if name == "-" else name
            raise InputError(f"{where}, line {number}: the line is blank, expected one text per line; remove it")
    return lines


def _decode(lines: Iterable[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}, line {number}: byte {error.start + 1} is not valid UTF-8, expected UTF-8 text; "
                "convert the file, with iconv for example"
            ) from error
        yield text.removesuffix("\n").removesuffix("\r")


def _read_file(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each document of a file, and where it is."""
    for number, line in enumerate(read_lines(name), 1):
        where = f"{'stdin' if name == '-' else name}, line {number}"
        if not name.lower().endswith(_SUFFIX):
            yield where, {"text": line}
        elif line.strip():
            yield where, _parse(line, where)


def _parse(line: str, where: str) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid JSON ({error}), {_EXPECTED}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("text"), str) or not fields.keys() <= _FIELDS:
        raise InputError(f"{where} is {short_repr(fields)}, {_EXPECTED}")
    return fields
