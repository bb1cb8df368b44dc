"""Documents, passages and search hits, and the validation of texts, ids and metadata."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from edgeembed_runtime._validation import validate_texts
from edgeembed_runtime.errors import InputError, short_repr

DocumentId: TypeAlias = int | str
Metadata: TypeAlias = dict[str, Any]

# Shared by all documents without metadata, to save memory. Nobody changes stored metadata in place.
NO_METADATA: Metadata = {}

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Document:
    """A document of an `Index`.

    Attributes:
        id: An integer or a string, unique in the index.
        text: The text.
        metadata: What else is known about it: values of type str, int, float, bool or None, or lists of them, by name.
    """

    id: Any  # int or str; a caller knows which of them the ids are
    text: str
    metadata: Metadata = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document's text.

    Attributes:
        start: The position of its first character in the document.
        end: The position after its last character.
        text: The characters between them.
    """

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and how well it matches.

    Attributes:
        id: The document's id in the `Index`; for a ranker, its position in the list that was ranked.
        score: The cosine with the query, the score of `SemanticRanker`, or that of the method of `Index.search`. Higher
            is better.
        text: The document's text.
        metadata: The document's metadata; empty if it has none.
        passage: The passage that matches best, if the document was split into passages; otherwise None.
    """

    id: Any  # as in Document
    score: float
    text: str
    metadata: Metadata = field(default_factory=dict, hash=False)
    passage: Passage | None = None


def validate_documents(documents: Iterable[str]) -> list[str]:
    """Return the texts of documents as a list of str that can be encoded as UTF-8.

    Raises:
        InputError: If one is not a str, or contains a lone surrogate.
    """
    texts = validate_texts(documents, "document")
    for position, text in enumerate(texts):
        if not _is_unicode(text):
            raise InputError(f"document {position} contains a lone surrogate, expected valid Unicode; remove it")
    return texts


def validate_ids(ids: Iterable[DocumentId], count: int | None = None) -> list[DocumentId]:
    """Return document ids as a list of int and str.

    Args:
        ids: The ids.
        count: The number of documents that the ids belong to, each id to one; None allows any number, and duplicates.

    Raises:
        InputError: If an id is not an integer of at most 64 bits or a str of valid Unicode, there are more or fewer
            than `count`, or one is there twice.
    """
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise InputError(f"the ids are {type(ids).__name__}, expected a list of document ids")
    listed = [_validate_id(each) for each in ids]
    if count is not None:
        _check_count("ids", len(listed), count)
        if len(set(listed)) < count:
            twice = next(each for each, occurrences in Counter(listed).items() if occurrences > 1)
            raise InputError(f"the id {short_repr(twice)} is there twice, expected a different id for each document")
    return listed


def validate_metadata(metadata: Iterable[Mapping[str, Any]], count: int) -> list[Metadata]:
    """Return a copy of the metadata of documents, which must not be changed in place.

    Args:
        metadata: One dict per document. A value is a str, a bool, a finite float, an integer of at most 64 bits, None,
            or a list of these.
        count: The number of documents.

    Raises:
        InputError: If the metadata is something else.
    """
    if isinstance(metadata, str | bytes | Mapping) or not isinstance(metadata, Iterable):
        raise InputError(f"the metadata is {type(metadata).__name__}, expected a list with one dict per document")
    listed = list(metadata)
    _check_count("metadata", len(listed), count)
    return [validate_fields(fields, f"the metadata of document {position}") for position, fields in enumerate(listed)]


def validate_fields(fields: Mapping[str, Any], where: str) -> Metadata:
    """Return a copy of the metadata of one document; see `validate_metadata`.

    Args:
        fields: The metadata.
        where: What it is called in messages.

    Raises:
        InputError: If the metadata is something else than a dict of valid values.
    """
    if not isinstance(fields, Mapping):
        raise InputError(f"{where} is {short_repr(fields)}, expected a dict; pass an empty one if there is nothing")
    if not fields:
        return NO_METADATA
    valid: Metadata = {}
    for name, value in fields.items():
        if not isinstance(name, str) or not _is_unicode(name):
            raise InputError(f"{where} has the key {short_repr(name)}, expected a str")
        try:
            valid[str(name)] = plain_value(value)
        except ValueError as error:
            raise InputError(
                f"{where}: {short_repr(name)} is {short_repr(value)}, expected a str, bool, finite float, integer of "
                "at most 64 bits, None, or a list of these; convert it"
            ) from error
    return valid


def copy_metadata(metadata: Metadata) -> Metadata:
    """Return a copy that shares nothing mutable with the original."""
    return {name: list(value) if isinstance(value, list) else value for name, value in metadata.items()}


def plain_value(value: Any) -> Any:
    """Return a metadata value as plain Python data, with lists copied.

    Raises:
        ValueError: If a metadata value cannot be this.
    """
    return [_plain_scalar(each) for each in value] if isinstance(value, list) else _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, str) and _is_unicode(value):
        return str(value)
    if isinstance(value, int | np.integer) and _INT64_MIN <= value <= _INT64_MAX:
        return int(value)
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return float(value)
    raise ValueError(short_repr(value))


def _validate_id(value: Any) -> DocumentId:
    if isinstance(value, str) and _is_unicode(value):
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and _INT64_MIN <= value <= _INT64_MAX:
        return int(value)
    raise InputError(f"{short_repr(value)} is not a document id, expected an integer of at most 64 bits, or a str")


def _check_count(name: str, given: int, count: int) -> None:
    if given != count:
        raise InputError(f"there are {given} {name} for {count} documents, expected one for each document")


def _is_unicode(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8; one with a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
