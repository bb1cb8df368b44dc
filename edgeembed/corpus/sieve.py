"""What is a sentence of a corpus and what is not, and the account of it."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

MIN_CHARACTERS = 3
"""Shorter lines are list marks and stray letters."""
MAX_CHARACTERS = 1000
"""Longer lines are not sentences: 1,000 characters are about 220 tokens of English."""


@dataclass(frozen=True)
class CorpusCounts:
    """What became of the texts that were read; the last five sum to the first.

    Attributes:
        read: Texts read, empty lines included.
        kept: Sentences in the corpus.
        too_short: Texts below the least number of characters.
        too_long: Texts above the greatest number of characters.
        duplicate: Texts that equal an earlier one once white space is folded.
        not_sampled: Sentences that a limit left out.
    """

    read: int
    kept: int
    too_short: int
    too_long: int
    duplicate: int
    not_sampled: int

    def to_dict(self) -> dict[str, int]:
        """Give the counts by name, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Give the counts in one line of plain words."""
        return (
            f"{self.read:,} read, {self.kept:,} kept, {self.duplicate:,} duplicate, "
            f"{self.too_short:,} too short, {self.too_long:,} too long, {self.not_sampled:,} not sampled"
        )


class Sieve:
    """Folds white space, drops what is too short or too long, and counts.

    Args:
        min_characters: Drop what is shorter, once white space is folded.
        max_characters: Drop what is longer.

    Attributes:
        passed: Texts that were neither too short nor too long.
    """

    def __init__(self, min_characters: int = MIN_CHARACTERS, max_characters: int = MAX_CHARACTERS) -> None:
        self._min, self._max = min_characters, max_characters
        self._seen: set[bytes] = set()
        self._too_short = self._too_long = self._duplicate = 0
        self.passed = 0

    def clean(self, texts: Iterable[str]) -> Iterator[str]:
        """Give the texts of a fit length, with single spaces for white space."""
        for text in texts:
            folded = " ".join(text.split())
            if len(folded) < self._min:
                self._too_short += 1
            elif len(folded) > self._max:
                self._too_long += 1
            else:
                self.passed += 1
                yield folded

    def distinct(self, texts: Iterable[str]) -> Iterator[str]:
        """Give each text the first time that it comes."""
        for text in texts:
            # Digests, because the texts of a corpus from which a sample is drawn may not fit in memory.
            digest = hashlib.blake2b(text.encode(), digest_size=12).digest()
            if digest in self._seen:
                self._duplicate += 1
            else:
                self._seen.add(digest)
                yield text

    def counts(self, *, kept: int, duplicate: int | None = None) -> CorpusCounts:
        """Give the account.

        Args:
            kept: Sentences that are in the corpus.
            duplicate: Texts that equalled another; those that `distinct` dropped if absent.
        """
        dropped = self._duplicate if duplicate is None else duplicate
        return CorpusCounts(
            read=self.passed + self._too_short + self._too_long,
            kept=kept,
            too_short=self._too_short,
            too_long=self._too_long,
            duplicate=dropped,
            not_sampled=self.passed - dropped - kept,
        )
