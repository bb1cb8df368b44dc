"""The documents of an index with their ids and vectors, and the validation of documents, ids and paths."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._validation import validate_texts
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.candidates import Positions
from edgeembed_runtime.index.vectors import GrowingArray, StoredVectors

_MAX_SHOWN_IDS = 5


@dataclass(frozen=True)
class IndexRows:
    """The documents of an index at one moment.

    Attributes:
        documents: The texts. Newer rows share the list, so that it may be longer than the other attributes.
        ids: (n,) int64, ascending.
        next_id: The id of the next document.
        vectors: (n, dimension).
    """

    documents: list[str]
    ids: GrowingArray
    next_id: int
    vectors: StoredVectors

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.ids)

    def append(self, texts: list[str], vectors: npt.NDArray[np.float32]) -> "IndexRows":
        """Return these rows and more at the end."""
        next_id = self.next_id + len(texts)
        ids = self.ids.append(np.arange(self.next_id, next_id, dtype=np.int64))
        stored = self.vectors.append(vectors)
        self.documents[len(self) :] = texts
        return IndexRows(self.documents, ids, next_id, stored)

    def positions_without(self, ids: set[int]) -> Positions:
        """Return the positions of the rows that remain if documents are removed.

        Raises:
            InputError: If there is no document with one of the ids.
        """
        present = self.ids.rows
        if unknown := sorted(ids.difference(present.tolist())):
            shown = ", ".join(map(str, unknown[:_MAX_SHOWN_IDS])) + (
                " and more" if len(unknown) > _MAX_SHOWN_IDS else ""
            )
            raise InputError(f"the index has no document with the id {shown}, expected ids of documents in the index")
        return np.flatnonzero(~np.isin(present, np.array(list(ids), dtype=np.int64)))

    def select(self, positions: Positions) -> "IndexRows":
        """Return a copy of some of the rows."""
        documents = [self.documents[position] for position in positions]
        return replace(
            self, documents=documents, ids=self.ids.select(positions), vectors=self.vectors.select(positions)
        )


def validate_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of an index's folder.

    Raises:
        InputError: If it is not a str or a path.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputError(f"the path is {type(path).__name__}, expected the path of an index's folder as a str or Path")
    return Path(path)


def validate_documents(documents: Iterable[str]) -> list[str]:
    """Return documents as a list of str that can be encoded as UTF-8.

    Raises:
        InputError: If one is not a str, or contains a lone surrogate.
    """
    texts = validate_texts(documents, "document")
    for position, text in enumerate(texts):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            message = f"document {position} contains a lone surrogate, expected valid Unicode; remove it"
            raise InputError(message) from error
    return texts


def validate_ids(ids: Iterable[int]) -> set[int]:
    """Return document ids as a set.

    Raises:
        InputError: If `ids` is not a list of integers.
    """
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise InputError(f"the ids are {type(ids).__name__}, expected a list of document ids")
    listed = list(ids)
    for each in listed:
        if isinstance(each, bool) or not isinstance(each, int | np.integer):
            raise InputError(f"{each!r} is not a document id, expected an integer as add and search return it")
    return {int(each) for each in listed}
