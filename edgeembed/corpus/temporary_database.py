"""A private SQLite database in temporary files, for data that may not fit in memory."""

import contextlib
import sqlite3
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from edgeembed_runtime.errors import InputError

CACHE_KIB = 16_384
"""Memory for cached pages, and again for each sort in progress; more makes nothing measurably faster."""


class TemporaryDatabase:
    """An empty database that only this object sees: the base of collections that may be larger than memory.

    SQLite keeps a small database in memory and writes a larger one to temporary files, which disappear when it is
    closed or the process ends. Sorts are external merge sorts. The files are in the folder that the environment
    variable `TMPDIR` names, or else in `/var/tmp`. Use it in a `with` statement, or close it.

    Args:
        schema: The statements that create the tables.
    """

    def __init__(self, schema: str) -> None:
        # The trainers of the library tokenizers read their text in a thread of their own, while the caller waits.
        # The transaction is explicit, because sqlite3 finds statements that write with the locale's lower case: not
        # INSERT in Turkish, before Python 3.13. For the same reason, do not use `rowcount`, but `total_changes`.
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._connection.executescript(
            f"PRAGMA temp_store = FILE; PRAGMA cache_size = -{CACHE_KIB}; PRAGMA journal_mode = OFF; {schema} BEGIN"
        )

    def close(self) -> None:
        """Delete the temporary files."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _filling(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection; close it after an error. A full disk raises InputError."""
        try:
            with _file_errors():
                yield self._connection
        except BaseException:
            self.close()
            raise

    def _rows(self, query: str, *arguments: int) -> Iterator[Any]:
        """Yield the rows of a query. A full disk raises InputError."""
        with _file_errors(), contextlib.closing(self._connection.execute(query, arguments)) as rows:
            yield from rows


@contextlib.contextmanager
def _file_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise InputError(
            f"the text cannot be copied to temporary files: {error}; expected free space for about twice the text: "
            "set the environment variable TMPDIR to a folder with more"
        ) from error
