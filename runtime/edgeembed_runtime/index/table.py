"""The texts, ids and metadata of the documents of an index."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from edgeembed_runtime.documents import (
    NO_METADATA,
    Document,
    DocumentId,
    Metadata,
    copy_metadata,
    validate_documents,
    validate_ids,
    validate_metadata,
)
from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.index.candidates import Positions

_MAX_SHOWN_IDS = 5
# The largest integer that index.json holds.
_MAX_NEXT_ID = (1 << 63) - 1


class DocumentBatch(NamedTuple):
    """Validated documents to add, or new content of documents to update.

    Attributes:
        texts: The texts.
        ids: The id of each document; None if the index chooses them.
        metadata: The metadata of each document; None if there is none.
    """

    texts: list[str]
    ids: list[DocumentId] | None
    metadata: list[Metadata] | None

    @classmethod
    def validate(
        cls,
        documents: Iterable[str],
        ids: Iterable[DocumentId] | None,
        metadata: Iterable[Mapping[str, Any]] | None,
    ) -> "DocumentBatch":
        """Return a batch of documents to add.

        Raises:
            InputError: If a text, an id or the metadata is invalid, or their numbers differ.
        """
        texts = validate_documents(documents)
        return cls(
            texts,
            None if ids is None else validate_ids(ids, len(texts)),
            None if metadata is None else validate_metadata(metadata, len(texts)),
        )


class DocumentTable:
    """The documents of an index at one moment.

    Instances are immutable. `append` returns a new one that shares the lists, so that these may be longer than the
    table. Append only to the newest one.

    Args:
        texts: The texts.
        ids: The ids; a range for ids that the index chose, which takes no memory.
        metadata: The metadata of each document.
        next_id: An integer above all integers that were ever used as ids.
        positions: The position of each id, if they are known. It may hold outdated positions.
    """

    def __init__(
        self,
        texts: list[str],
        ids: range | list[DocumentId],
        metadata: list[Metadata],
        next_id: int,
        positions: dict[DocumentId, int] | None = None,
    ) -> None:
        self._texts = texts
        self._ids = ids
        self._metadata = metadata
        self._count = len(texts)
        self._positions = positions
        self.next_id = next_id

    @classmethod
    def empty(cls) -> "DocumentTable":
        """Return a table without documents."""
        return cls([], range(0), [], 0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, without what a newer table shares."""
        return DocumentTable, (list(self.texts()), self.ids(), list(self.metadata()), self.next_id)

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._count

    def __getitem__(self, position: int) -> Document:
        """Return the document at a position below `len`."""
        return Document(self._ids[position], self._texts[position], copy_metadata(self._metadata[position]))

    def __iter__(self) -> Iterator[Document]:
        """Yield the documents."""
        return map(self.__getitem__, range(len(self)))

    def ids(self, start: int = 0) -> "range | list[DocumentId]":
        """Return the ids of the documents from a position on."""
        return self._ids[start : len(self)]

    def texts(self) -> Iterator[str]:
        """Yield the texts."""
        return islice(self._texts, len(self))

    def metadata(self) -> Iterator[Metadata]:
        """Yield the metadata of each document, which must not be changed."""
        return islice(self._metadata, len(self))

    def position(self, document_id: DocumentId) -> int | None:
        """Return the position of a document, or None if there is none with this id."""
        if isinstance(self._ids, range):
            is_present = isinstance(document_id, int) and document_id in self._ids
            return self._ids.index(document_id) if is_present else None  # type: ignore[arg-type] # an int
        if self._positions is None:
            self._positions = {each: position for position, each in enumerate(islice(self._ids, len(self)))}
        position = self._positions.get(document_id)
        if position is None or position >= len(self) or self._ids[position] != document_id:
            return None
        return position

    def find(self, ids: Sequence[DocumentId]) -> Positions:
        """Return the position of each document.

        Raises:
            InputError: If there is no document with one of the ids.
        """
        found = [self.position(each) for each in ids]
        if unknown := {each: None for each, position in zip(ids, found, strict=True) if position is None}:
            raise InputError(f"the index has no document with the id {_shown(unknown)}, expected ids of its documents")
        return np.array(found, dtype=np.intp)

    def check_new(self, ids: Sequence[DocumentId]) -> None:
        """Raise InputError if there is a document with one of the ids."""
        if known := [each for each in ids if self.position(each) is not None]:
            raise InputError(
                f"the index has a document with the id {_shown(known)} already, expected new ids; "
                "to replace documents, call update"
            )

    def append(self, batch: DocumentBatch) -> "DocumentTable":
        """Return these documents and more at the end.

        Raises:
            InputError: If an id is taken, or there are no integers left to choose as ids.
        """
        next_id = self._next_id_after(batch)
        ids = self._appended_ids(batch)
        self._texts[len(self) :] = batch.texts
        self._metadata[len(self) :] = batch.metadata or [NO_METADATA] * len(batch.texts)
        positions = self._positions  # read once: another thread that looks up an id may set it at any moment
        if positions is not None:
            new = islice(ids, len(self), None)
            positions.update(zip(new, range(len(self), len(self._texts)), strict=True))
        return DocumentTable(self._texts, ids, self._metadata, next_id, positions)

    def replace(
        self, positions: Positions, texts: list[str] | None, metadata: list[Metadata] | None
    ) -> "DocumentTable":
        """Return a table with other texts or metadata, or both, at some positions."""
        return DocumentTable(
            _replaced(self.texts(), positions, texts),
            self.ids(),
            _replaced(self.metadata(), positions, metadata),
            self.next_id,
        )

    def select(self, positions: Positions) -> "DocumentTable":
        """Return a table with some of the documents."""
        kept = positions.tolist()
        return DocumentTable(
            [self._texts[position] for position in kept],
            [self._ids[position] for position in kept],
            [self._metadata[position] for position in kept],
            self.next_id,
        )

    def with_next_id(self, next_id: int) -> "DocumentTable":
        """Return this table with a larger `next_id`."""
        return DocumentTable(self._texts, self._ids, self._metadata, next_id, self._positions)

    def _next_id_after(self, batch: DocumentBatch) -> int:
        if batch.ids is not None:
            self.check_new(batch.ids)
            return min(max([self.next_id, *(each + 1 for each in batch.ids if isinstance(each, int))]), _MAX_NEXT_ID)
        if self.next_id + len(batch.texts) > _MAX_NEXT_ID:
            raise InputError("the index has no larger integers for ids, expected ids for the new documents; pass them")
        return self.next_id + len(batch.texts)

    def _appended_ids(self, batch: DocumentBatch) -> range | list[DocumentId]:
        chosen = range(self.next_id, self.next_id + len(batch.texts))
        if batch.ids is None and isinstance(self._ids, range) and (len(self) == 0 or self._ids.stop == self.next_id):
            return range(self._ids.start if len(self) else chosen.start, chosen.stop)
        ids: list[DocumentId] = list(self._ids) if isinstance(self._ids, range) else self._ids
        ids[len(self) :] = chosen if batch.ids is None else batch.ids
        return ids


def _replaced(values: Iterable[Any], positions: Positions, new: list[Any] | None) -> list[Any]:
    replaced = list(values)
    for position, value in zip(positions.tolist(), new or [], strict=new is not None):
        replaced[position] = value
    return replaced


def _shown(ids: Iterable[DocumentId]) -> str:
    """Return ids for a message: integers first, in order."""
    ordered = sorted(ids, key=lambda each: (isinstance(each, str), each))
    shown = ", ".join(short_repr(each) for each in ordered[:_MAX_SHOWN_IDS])
    return shown + (" and more" if len(ordered) > _MAX_SHOWN_IDS else "")
