"""Transactions on a small SQLite file that threads and processes share and that survives a killed process."""

import contextlib
import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.interests.messages import one_line

MEMORY = ":memory:"
Access = Literal["read", "write"]
_TIMEOUT_SECONDS = 5.0
# Held during every transaction, by one thread of this process at a time, and while it forks: a child of a process in
# a transaction would forever take the file for locked. Held while a file is created too, for closing any descriptor
# of a file drops the locks that SQLite holds on it in this process.
_USING = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_USING.acquire, after_in_parent=_USING.release, after_in_child=_USING.release)
START_ANEW = "restore it from a backup, or remove it and start anew"
# Part of SQLite's message -> our message; Python 3.10 exposes no error codes.
_EXPLAINED = {
    "locked": "was locked by another process for too long; end that process, or try again",
    "not a database": "is not an SQLite file, expected a file made by this package; give another path",
    "malformed": f"is damaged; {START_ANEW}",
    "overflow": f"is damaged: its counts are too large; {START_ANEW}",
    "no such": f"is damaged: a table or a column is missing; {START_ANEW}",
    "decode": f"is damaged: a text is not UTF-8; {START_ANEW}",
    "readonly": "cannot be written: it is read-only; make it writable, or copy it elsewhere",
    "unable to open": "cannot be opened, expected a file in a folder that may be written; give another path",
    "full": "cannot be written: the disk is full; make room",
}


class Database:
    """An SQLite file that is opened for each transaction.

    Opening takes 0.1 ms. In return a fork inherits no connection, and a replaced or removed file is noticed. The
    transactions of one process wait for each other. Changes go through a rollback journal rather than a write-ahead
    log, which leaves a single file, without copies of personal data beside it, that can be read from a read-only
    folder. With synchronous=EXTRA a change is on the disk when its transaction has ended; secure_delete overwrites
    what is removed with zeros; with trusted_schema off no function that a file's schema calls can have a side effect.

    Args:
        path: The file; ":memory:" is a database that only this object sees; a fork gets a copy.
        create: Whether to create an absent file, empty and readable by its owner alone.

    Raises:
        InputError: If the file is absent and may not or cannot be created.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool) -> None:
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            raise InputError(f"the store is {type(path).__name__}, expected a path, or {MEMORY!r}")
        self._name = os.fspath(path)
        self._memory: sqlite3.Connection | None = None
        if self._name == MEMORY:
            self._memory = _connect(MEMORY)
            weakref.finalize(self, self._memory.close)  # Python 3.13 warns of a connection that nobody closed
            return
        self._path = Path(self._name).absolute()  # so that it stays the same file when the process changes folder
        if create:
            _create(self._path, self._name)
        elif not self._path.is_file():
            raise InputError(f"{self._name!r} is not a file, expected an existing store; give another path")

    def __str__(self) -> str:
        """Return the path as it was given, on one line, for messages."""
        return one_line(self._name)

    @contextlib.contextmanager
    def transaction(self, access: Access) -> Iterator[sqlite3.Connection]:
        """Return a context manager with a connection in a transaction: rolled back on an exception, else committed.

        Raises:
            InputError: If the file cannot be used; the message says why.
        """
        try:
            with _USING, self._connected() as connection:
                try:
                    _begin(connection, access)
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        connection.rollback()
                    raise
        # Python decodes SQLite's messages, which may hold pieces of a damaged file.
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._explained(error) from error

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if self._memory is None:
            with contextlib.closing(_connect(f"{self._path.as_uri()}?mode=rw")) as connection:
                yield connection
            return
        yield self._memory

    def _explained(self, error: Exception) -> InputError:
        said = one_line(str(error))
        explained = next((text for part, text in _EXPLAINED.items() if part in said), "cannot be used; try again")
        return InputError(f"{self} {explained} ({said})")


def _connect(uri: str) -> sqlite3.Connection:
    # Without an isolation level, transactions are explicit. Only the one in memory passes between threads.
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")  # reads nothing of the file; unknown before SQLite 3.31
    return connection


def _begin(connection: sqlite3.Connection, access: Access) -> None:
    """Begin a transaction, and wait for it while another process has the file.

    SQLite's own waiting looks again every 0.1 s at last, and may never look while a busy writer pauses.
    """
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    connection.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            if access == "write":
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE" if access == "write" else "BEGIN")
            connection.execute("PRAGMA schema_version").fetchone()  # the first to lock the file if this is to read
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            connection.rollback()
        time.sleep(random.uniform(0.001, 0.004))  # noqa: S311 - no secret: two who wait must not keep step
    # What is left to wait for are readers, who are gone in a moment.
    connection.execute(f"PRAGMA busy_timeout = {_TIMEOUT_SECONDS * 1000:.0f}")


def _create(path: Path, name: str) -> None:
    with _USING:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            if not path.is_file():
                raise InputError(f"{name!r} is not a file, expected a file or a new path; give another path") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"cannot create {name!r}: {reason}; give a path in a folder that may be written"
            ) from error
