"""Cleaning of the texts of a corpus, and the counts of what is kept and dropped."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

MIN_CHARACTERS = 3
"""Shorter lines are list marks and single letters."""
MAX_CHARACTERS = 1000
"""Longer lines are not sentences: 1,000 characters are about 220 tokens of English."""


@dataclass(frozen=True)
class CorpusCounts:
    """How many texts were read, kept and dropped. The last five counts sum to the first.

    Attributes:
        read: Texts read, empty lines included.
        kept: Sentences in the corpus.
        too_short: Texts with too few characters.
        too_long: Texts with too many characters.
        duplicate: Texts that equal an earlier one after runs of white space are replaced by single spaces.
        not_sampled: Sentences beyond a limit.
    """

    read: int
    kept: int
    too_short: int
    too_long: int
    duplicate: int
    not_sampled: int

    def to_dict(self) -> dict[str, int]:
        """Return the counts by name, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the counts in one line."""
        return (
            f"{self.read:,} read, {self.kept:,} kept, {self.duplicate:,} duplicate, "
            f"{self.too_short:,} too short, {self.too_long:,} too long, {self.not_sampled:,} not sampled"
        )


class TextFilter:
    """Clean texts, and count what is dropped.

    Args:
        min_characters: Drop shorter texts, after runs of white space are replaced by single spaces.
        max_characters: Drop longer texts.

    Attributes:
        passed: Texts of a suitable length.
    """

    def __init__(self, min_characters: int = MIN_CHARACTERS, max_characters: int = MAX_CHARACTERS) -> None:
        self._min_characters, self._max_characters = min_characters, max_characters
        self._too_short = self._too_long = 0
        self.passed = 0

    def clean(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the texts of a suitable length, with single spaces for runs of white space."""
        for text in texts:
            cleaned = " ".join(text.split())
            if len(cleaned) < self._min_characters:
                self._too_short += 1
            elif len(cleaned) > self._max_characters:
                self._too_long += 1
            else:
                self.passed += 1
                yield cleaned

    def counts(self, *, kept: int, duplicate: int) -> CorpusCounts:
        """Return the counts.

        Args:
            kept: Sentences in the corpus.
            duplicate: Texts that equal another one.
        """
        return CorpusCounts(
            read=self.passed + self._too_short + self._too_long,
            kept=kept,
            too_short=self._too_short,
            too_long=self._too_long,
            duplicate=duplicate,
            not_sampled=self.passed - duplicate - kept,
        )
