"""Reading of documents with ids and metadata from JSON Lines, and of other texts."""

import argparse
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from edgeembed_runtime.cli.common import read_lines
from edgeembed_runtime.errors import InputError, short_repr

_SUFFIX = ".jsonl"
_FIELDS = {"text", "id", "metadata"}
_EXPECTED = (
    'expected an object such as {"id": "a", "text": "...", "metadata": {"year": 2020}}, of which only text is needed'
)


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
