"""Counts of the words of a text that may be larger than memory."""

from collections import Counter
from collections.abc import Iterable, Iterator

from tokenizers import normalizers, pre_tokenizers

from edgeembed.corpus.temporary_database import TemporaryDatabase

_STRINGS_IN_MEMORY = 200_000
"""Distinct strings between spaces that are counted in memory, about 100 bytes each; then they move to the disk."""

_SCHEMA = """
CREATE TABLE parts (word TEXT, count INTEGER);
CREATE TABLE words (word TEXT, count INTEGER);
"""


class WordCounts(TemporaryDatabase):
    """How often each word of a text occurs. The counts are exact.

    Memory grows neither with the text nor with the number of its distinct words: the counts of parts of the text are
    summed on disk.

    Args:
        sentences: The text. It is read at once, one sentence in memory at a time.
        normalizer: BERT's normalizer. Its pre-tokenizer then splits the sentences into words.

    Raises:
        InputError: If the temporary files cannot be written.
    """

    def __init__(self, sentences: Iterable[str], normalizer: normalizers.BertNormalizer) -> None:
        super().__init__(_SCHEMA)
        self._normalizer = normalizer
        # BERT's normalizer and pre-tokenizer treat what lies between spaces alone, so a string is split only once.
        strings: Counter[str] = Counter()
        with self._filling() as connection:
            for sentence in sentences:
                strings.update(sentence.split(" "))
                if len(strings) >= _STRINGS_IN_MEMORY:
                    connection.executemany("INSERT INTO parts VALUES (?, ?)", self._split(strings).items())
                    strings.clear()
            connection.executemany("INSERT INTO parts VALUES (?, ?)", self._split(strings).items())
            connection.execute("INSERT INTO words SELECT word, sum(count) FROM parts GROUP BY word")

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Yield each word with its count, in the order of the words."""
        return self._rows("SELECT word, count FROM words")

    def most_frequent(self, maximum: int) -> Iterator[tuple[str, int]]:
        """Yield the most frequent words with their counts; words of equal count in their order.

        Args:
            maximum: The maximum number of words.
        """
        query = "SELECT word, count FROM words ORDER BY count DESC, word LIMIT ?"
        return self._rows(query, maximum)

    def _split(self, strings: Counter[str]) -> Counter[str]:
        normalize, split = self._normalizer.normalize_str, pre_tokenizers.BertPreTokenizer().pre_tokenize_str
        words: Counter[str] = Counter()
        for string, count in strings.items():
            for word, _ in split(normalize(string)):
                words[word] += count
        return words
