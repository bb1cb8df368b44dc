"""Deduplication of texts on disk."""

import hashlib
from collections.abc import Iterable, Iterator

from edgeembed.corpus.temporary_database import TemporaryDatabase

_DIGEST_BYTES = 12
"""Among 100 million texts, two different ones have the same digest of 96 bits with a probability of 6e-14."""

_SCHEMA = """
CREATE TABLE texts (row INTEGER PRIMARY KEY, digest BLOB, domain INTEGER, text TEXT);
CREATE TABLE firsts (row INTEGER PRIMARY KEY);
"""


class DistinctTexts(TemporaryDatabase):
    """The distinct texts of a stream, in the order of their first occurrences.

    Memory does not grow with the stream: its texts are copied to temporary files, and an external sort finds the equal
    ones by their digests. Iterate any number of times.

    Args:
        texts: Texts with the number of their domain. The stream is read at once.

    Attributes:
        duplicates: Texts that equal an earlier one, whatever its domain.

    Raises:
        InputError: If the temporary files cannot be written.
    """

    def __init__(self, texts: Iterable[tuple[str, int]]) -> None:
        super().__init__(_SCHEMA)
        with self._filling() as connection:
            connection.executemany(
                "INSERT INTO texts (digest, domain, text) VALUES (?, ?, ?)",
                ((_digest(text), domain, text) for text, domain in texts),
            )
            read = connection.total_changes
            connection.execute("INSERT INTO firsts SELECT min(row) AS first FROM texts GROUP BY digest ORDER BY first")
            self._size = connection.total_changes - read
        self.duplicates = read - self._size

    def __len__(self) -> int:
        """Return the number of distinct texts."""
        return self._size

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Yield each distinct text with the domain of its first occurrence."""
        # CROSS JOIN fixes the order: SQLite scans `firsts` and looks up `texts`, both in the order of their rows.
        return self._rows("SELECT text, domain FROM firsts CROSS JOIN texts USING (row)")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()
