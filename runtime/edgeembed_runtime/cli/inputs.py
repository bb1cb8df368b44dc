"""What a command reads: texts, and documents with ids and metadata, from files, stdin and --text."""

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

from edgeembed_runtime.characters import is_blank
from edgeembed_runtime.cli.files import Entry, read_entries
from edgeembed_runtime.errors import InputError, short_repr


def read_texts(args: argparse.Namespace, *, allow_blank: bool = True) -> list[str]:
    """Return the texts of FILE... and --text, in this order. Ids and metadata in a file are ignored.

    Args:
        args: The parsed arguments.
        allow_blank: Whether a text may be empty or whitespace. If not, empty lines at the end of a file are dropped.

    Raises:
        InputError: If there are no texts, a file cannot be read, or a text is blank and may not be.
    """
    if not allow_blank and any(map(is_blank, args.text)):
        raise InputError("--text is blank, expected a text that is not blank; leave it out")
    return [entry.fields["text"] for entry in _read_entries(args, allow_blank=allow_blank)]


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
    """Return the documents of FILE... and --text, in this order; see `edgeembed_runtime.cli.files.read_entries`.

    Raises:
        InputError: If there are no documents, a file cannot be read, an id or metadata is invalid, an id is there
            twice, or some documents have an id and others do not.
    """
    entries = _read_entries(args)
    from edgeembed_runtime.documents import validate_fields

    ids = _validated_ids(entries) if any("id" in entry.fields for entry in entries) else None
    metadata = [validate_fields(entry.fields.get("metadata", {}), f"{entry.where}: the metadata") for entry in entries]
    return GivenDocuments([entry.fields["text"] for entry in entries], ids, metadata)


def _read_entries(args: argparse.Namespace, *, allow_blank: bool = True) -> list[Entry]:
    if not args.files and not args.text:
        raise InputError("no texts were given, expected a FILE with one text per line, - for stdin, or --text TEXT")
    entries: list[Entry] = []
    for name in args.files:
        entries += read_entries(name) if allow_blank else _without_blank(read_entries(name))
    if not entries and not args.text:
        raise InputError(f"{', '.join(args.files)}: the file has no text, expected one text per line")
    return [*entries, *(Entry("--text", {"text": text}) for text in args.text)]


def _without_blank(entries: list[Entry]) -> list[Entry]:
    """Return the texts of a file without empty ones at its end; raise InputError if another one is blank."""
    while entries and not entries[-1].fields["text"]:
        entries.pop()
    for where, fields in entries:
        if is_blank(fields["text"]):
            raise InputError(f"{where}: the text is blank, expected a text that is not blank; remove it")
    return entries


def _validated_ids(entries: Sequence[Entry]) -> list[Any]:
    from edgeembed_runtime.documents import validate_ids

    places: dict[Any, str] = {}
    for where, fields in entries:
        if "id" not in fields:
            raise InputError(f"{where}: the document has no id but others have one; give all of them an id, or none")
        try:
            [each] = validate_ids([fields["id"]])
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        if each in places:
            raise InputError(
                f"{where}: the id {short_repr(each)} is there twice, first in {places[each]}; expected a different id "
                "for each document"
            )
        places[each] = where
    return list(places)
