"""Random samples of texts, and the held-out split."""

import hashlib
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

from edgeembed_runtime.errors import InputError

T = TypeVar("T")

_HELD_OUT_SHARE = 0.1
_SLACK = 1.25
"""How far a `DistinctSample` may outgrow its size before it is pruned, because pruning sorts."""


def held_out_count(sentences: int, maximum: int) -> int:
    """Return the size of the held-out split of a corpus: a tenth of it, so that a small corpus also trains.

    Args:
        sentences: The number of distinct sentences in the corpus.
        maximum: The maximum size of the held-out split.
    """
    return min(maximum, int(sentences * _HELD_OUT_SHARE))


def split_holdout(sentences: Sequence[str], count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Split sentences at random into a training and a held-out split.

    Args:
        sentences: Distinct sentences.
        count: The size of the held-out split.
        seed: The seed of the split.

    Returns:
        The training sentences and the held-out sentences, each in the original order.

    Raises:
        InputError: If `count` is negative or leaves no training sentence.
    """
    held_out = held_out_rows(len(sentences), count, seed)
    train = [text for index, text in enumerate(sentences) if index not in held_out]
    return train, [sentences[index] for index in sorted(held_out)]


def held_out_rows(sentences: int, count: int, seed: int = 0) -> set[int]:
    """Return the indices of the held-out sentences, which `split_holdout` holds out of a list.

    Args:
        sentences: The number of sentences.
        count: The size of the held-out split.
        seed: The seed of the split.

    Raises:
        InputError: If `count` is negative or leaves no training sentence.
    """
    if not 0 <= count < sentences:
        raise InputError(
            f"{count} of {sentences} sentences cannot be held out; "
            f"expected 0 to {max(sentences - 1, 0)}: hold out fewer (corpus.heldout) or use a larger corpus"
        )
    return set(new_rng(seed).sample(range(sentences), count))


def sample_stream(items: Iterable[T], count: int | None, rng: random.Random) -> Iterable[T]:
    """Draw a uniform sample of a stream in one pass (reservoir sampling; Vitter 1985, algorithm R).

    Args:
        items: The stream.
        count: The maximum size of the sample; None returns the stream itself.
        rng: The random number generator.

    Returns:
        The sample, in the order of the stream.
    """
    if count is None:
        return items
    kept: list[tuple[int, T]] = []
    for index, item in enumerate(items):
        if index < count:
            kept.append((index, item))
        elif (slot := rng.randrange(index + 1)) < count:
            kept[slot] = (index, item)
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])]


class DistinctSample:
    """Uniform sample of the distinct texts of a stream, independent of their frequency and order.

    The texts with the smallest keyed hashes are kept (bottom-k sampling; Cohen and Kaplan 2007, "Summarizing Data
    using Bottom-k Sketches"), so memory is bounded by the sample and not by the stream. Of two samples of one stream
    with one seed, the smaller is a prefix of the larger.

    Args:
        count: The maximum size of the sample.
        seed: The seed of the sample.

    Attributes:
        duplicates: Texts that equal one in the current sample.
    """

    def __init__(self, count: int, seed: int | str) -> None:
        self._count = count
        self._max_kept = max(int(count * _SLACK), count + 1)
        self._key = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
        self._kept: dict[bytes, str] = {}
        self._bound: bytes | None = None
        self.duplicates = 0

    def read(self, texts: Iterable[str]) -> None:
        """Read the next part of the stream."""
        for text in texts:
            digest = hashlib.blake2b(text.encode(), digest_size=16, key=self._key).digest()
            if digest in self._kept:
                self.duplicates += 1
            elif self._bound is None or digest < self._bound:
                self._kept[digest] = text
                if len(self._kept) > self._max_kept:
                    self._prune()

    def texts(self) -> list[str]:
        """Return the sample in the order of its hashes, which is random."""
        self._prune()
        return list(self._kept.values())

    def __len__(self) -> int:
        """Return the number of texts in memory, at most a quarter more than the sample's size."""
        return len(self._kept)

    def _prune(self) -> None:
        smallest = sorted(self._kept)[: self._count]
        self._kept = {digest: self._kept[digest] for digest in smallest}
        if len(smallest) == self._count:
            self._bound = smallest[-1]


def new_rng(seed: int | str) -> random.Random:
    """Return a random number generator with a seed."""
    return random.Random(seed)  # noqa: S311  # not used for secrets
