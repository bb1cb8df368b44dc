"""The vocabulary of a tokenizer, in little memory."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import eq

import numpy as np

MAX_ID = 2**32 - 1


class Vocabulary(Mapping[str, int]):
    """The id of each token. It takes a sixth of the memory of a dict. Threads may share it.

    It is a hash table with open addressing: a token has the slot of its hash, or the next one that was free. A slot
    holds the token's row, from 1; 0 if it is free.

    Args:
        parts: The ids of some tokens each, in order. A token that is in two parts has the id of the last one.
        max_size: The number of tokens, or a larger one.

    Attributes:
        lengths: The lengths of tokens in characters, each once, in ascending order.

    Raises:
        ValueError: If an id is not an integer from 0 to 2^32 - 1.
    """

    def __init__(self, parts: Iterable[Mapping[str, int]], max_size: int) -> None:
        # Memory is taken once and filled in place, which leaves no holes in the heap. Single values of a memoryview
        # are read and written faster than those of an array.
        slots = np.zeros(2 ** (max_size + max_size // 2).bit_length(), np.uint32).data
        ends, text = np.zeros(max_size + 1, np.uint32).data, bytearray()
        ids: list[int] | None = None  # as nearly always: the ids are in order
        lengths: set[int] = set()
        row, last_slot = 0, len(slots) - 1
        for part in parts:
            if ids is None and not all(map(eq, part.values(), range(row, row + len(part)))):
                ids = list(range(row))
            if ids is not None:
                ids += _checked_ids(part.values())
            lengths.update(map(len, part))
            for token in part:
                row += 1
                encoded, slot = _encode(token), hash(token) & last_slot
                while (other := slots[slot]) and text[ends[other - 1] : ends[other]] != encoded:
                    slot = (slot + 1) & last_slot
                slots[slot] = row
                text += encoded
                ends[row] = len(text)
        self.lengths = sorted(lengths)
        self._slots, self._last_slot, self._ends, self._text = slots, last_slot, ends, text
        self._ids: Sequence[int] = range(row) if ids is None else ids

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        """Yield the tokens in the order in which they were given."""
        return (self._token(row).decode("utf-8", "surrogatepass") for row in range(1, len(self) + 1))

    def __getitem__(self, token: str) -> int:
        """Return the id of a token.

        Raises:
            KeyError: If it is not in the vocabulary.
        """
        if (number := self.find(token)) is None:
            raise KeyError(token)
        return number

    def find(self, token: str) -> int | None:
        """Return the id of a token, or None if it is not in the vocabulary."""
        slots, slot = self._slots, hash(token) & self._last_slot
        if not slots[slot]:  # as of half of the strings that are no tokens
            return None
        encoded, text, ends = _encode(token), self._text, self._ends
        while row := slots[slot]:
            if text[ends[row - 1] : ends[row]] == encoded:
                return self._ids[row - 1]
            slot = (slot + 1) & self._last_slot
        return None

    def _token(self, row: int) -> bytearray:
        return self._text[self._ends[row - 1] : self._ends[row]]


def _encode(token: str) -> bytes:
    return token.encode("utf-8", "surrogatepass")


def _checked_ids(ids: Collection[int]) -> Collection[int]:
    if set(map(type, ids)) != {int} or min(ids) < 0 or max(ids) > MAX_ID:
        raise ValueError(f"has a vocabulary with other values than ids from 0 to {MAX_ID}")
    return ids
