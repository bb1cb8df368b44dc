"""Counts of the words of a text that may be larger than memory."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

from tokenizers import normalizers, pre_tokenizers

from edgeembed.corpus.temporary_database import open_temporary_database, temporary_file_errors

_STRINGS_IN_MEMORY = 200_000
"""Distinct strings between spaces that are counted in memory, about 100 bytes each; then they move to the disk."""

_SCHEMA = """
CREATE TABLE parts (word TEXT, count INTEGER);
CREATE TABLE words (word TEXT, count INTEGER);
"""


class WordCounts:
    """How often each word of a text occurs. The counts are exact.

    Memory grows neither with the text nor with the number of its distinct words: a temporary database sums the counts
    of the parts of the text. Use it in a `with` statement, or close it.

    Args:
        sentences: The text. It is read at once, one sentence in memory at a time.
        normalizer: BERT's normalizer. Its pre-tokenizer then splits the sentences into words.

    Raises:
        InputError: If the temporary files cannot be written.
    """

    def __init__(self, sentences: Iterable[str], normalizer: normalizers.BertNormalizer) -> None:
        self._database = open_temporary_database(_SCHEMA)
        self._normalizer = normalizer
        # BERT's normalizer and pre-tokenizer treat what lies between spaces alone, so a string is split only once.
        strings: Counter[str] = Counter()
        try:
            with temporary_file_errors():
                for sentence in sentences:
                    strings.update(sentence.split(" "))
                    if len(strings) >= _STRINGS_IN_MEMORY:
                        self._add(strings)
                        strings.clear()
                self._add(strings)
                self._database.execute("INSERT INTO words SELECT word, sum(count) FROM parts GROUP BY word")
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Yield each word with its count, in the order of the words."""
        return self._rows("SELECT word, count FROM words")

    def most_frequent(self, maximum: int) -> Iterator[tuple[str, int]]:
        """Yield the most frequent words with their counts; words of equal count in their order.

        Args:
            maximum: The maximum number of words.
        """
        return self._rows("SELECT word, count FROM words ORDER BY count DESC, word LIMIT ?", maximum)

    def close(self) -> None:
        """Delete the temporary files."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _add(self, strings: Counter[str]) -> None:
        normalize, split = self._normalizer.normalize_str, pre_tokenizers.BertPreTokenizer().pre_tokenize_str
        words: Counter[str] = Counter()
        for string, count in strings.items():
            for word, _ in split(normalize(string)):
                words[word] += count
        self._database.executemany("INSERT INTO parts VALUES (?, ?)", words.items())

    def _rows(self, query: str, *arguments: int) -> Iterator[tuple[str, int]]:
        with temporary_file_errors(), contextlib.closing(self._database.execute(query, arguments)) as rows:
            yield from rows
