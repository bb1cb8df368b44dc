"""A sample of a stream's distinct texts, in memory that the sample bounds and not the stream."""

import hashlib
from collections.abc import Iterable

_SLACK = 1.25
"""How far the texts at hand may outgrow the sample before they are cut back to it, which takes a sort."""


class DistinctSample:
    """Draws uniformly from the distinct texts of a stream, however often each comes and in whatever order.

    Texts are kept by the smallest keyed hashes (bottom-k sampling; Cohen and Kaplan 2007, "Summarizing Data using
    Bottom-k Sketches"). Of two samples of one stream with one seed, the smaller is the beginning of the larger.

    Args:
        count: The most texts to keep.
        seed: Decides which.

    Attributes:
        duplicates: Texts that equalled one that was at hand.
    """

    def __init__(self, count: int, seed: int | str) -> None:
        self._count = count
        self._most = max(int(count * _SLACK), count + 1)
        self._key = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
        self._kept: dict[bytes, str] = {}
        self._bound: bytes | None = None
        self.duplicates = 0

    def read(self, texts: Iterable[str]) -> None:
        """Read a part of the stream."""
        for text in texts:
            digest = hashlib.blake2b(text.encode(), digest_size=16, key=self._key).digest()
            if digest in self._kept:
                self.duplicates += 1
            elif self._bound is None or digest < self._bound:
                self._kept[digest] = text
                if len(self._kept) > self._most:
                    self._cut()

    def texts(self) -> list[str]:
        """Give the sample, in the order of its hashes, which is random."""
        self._cut()
        return list(self._kept.values())

    def __len__(self) -> int:
        """Give how many texts are at hand, a quarter more than the sample's at the most."""
        return len(self._kept)

    def _cut(self) -> None:
        smallest = sorted(self._kept)[: self._count]
        self._kept = {digest: self._kept[digest] for digest in smallest}
        if len(smallest) == self._count:
            self._bound = smallest[-1]
