"""A private SQLite database in temporary files, for data that may not fit in memory."""

import contextlib
import sqlite3
from collections.abc import Iterator

from edgeembed_runtime.errors import InputError

CACHE_KIB = 16_384
"""Memory for cached pages, and again for each sort in progress; more makes nothing measurably faster."""


def open_temporary_database(schema: str) -> sqlite3.Connection:
    """Open an empty database that only this connection sees.

    SQLite keeps a small database in memory and writes a larger one to temporary files, which disappear when the
    connection is closed or the process ends. Sorts are external merge sorts. The files are in the folder `TMPDIR`, or
    else in `/var/tmp`.

    Args:
        schema: The statements that create the tables.
    """
    # The trainers of the library tokenizers read their text in a thread of their own, while the caller waits.
    connection = sqlite3.connect("", check_same_thread=False)
    connection.executescript(
        f"PRAGMA temp_store = FILE; PRAGMA cache_size = -{CACHE_KIB}; PRAGMA journal_mode = OFF; {schema}"
    )
    return connection


@contextlib.contextmanager
def temporary_file_errors() -> Iterator[None]:
    """Raise InputError if the temporary files cannot be written, for example because the disk is full."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise InputError(
            f"the text cannot be copied to temporary files: {error}; expected free space for about twice the text: "
            "set the environment variable TMPDIR to a folder with more"
        ) from error
