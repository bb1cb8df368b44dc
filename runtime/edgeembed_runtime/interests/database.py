"""An SQLite file with transactions that are safe across threads, processes and forks."""

import contextlib
import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, Literal

from edgeembed_runtime.errors import InputError, one_line

Access = Literal["read", "write"]
IN_MEMORY = ":memory:"

_TIMEOUT_SECONDS = 5.0
# Held by one thread of this process during every transaction and during a fork: a child forked in the middle of a
# transaction would believe forever that the file is locked. Also held while a file is created, because closing any
# descriptor of a file releases the locks that SQLite holds on it in this process.
_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)
_REMEDY = "restore it from a backup, or remove it to start a new one"
# A part of SQLite's message -> our explanation; Python 3.10 exposes no error codes.
_EXPLANATIONS = {
    "locked": "was locked by another process for too long; end that process, or try again",
    "not a database": "is not an SQLite file, expected a file made by this package; choose another path",
    "malformed": f"is damaged; {_REMEDY}",
    "overflow": f"is damaged: its counts are too large; {_REMEDY}",
    "no such": f"is damaged: a table or a column is missing; {_REMEDY}",
    "decode": f"is damaged: a text is not UTF-8; {_REMEDY}",
    "readonly": "cannot be written: it is read-only; make it writable, or copy it elsewhere",
    "unable to open": "cannot be opened, expected a file in a writable folder; choose another path",
    "full": "cannot be written: the disk is full; free some space",
}


class Database:
    """An SQLite file that is opened for each transaction.

    Opening takes 0.1 ms. In return, a fork inherits no connection, and a replaced or removed file is noticed. The
    transactions of one process wait for each other. Changes go through a rollback journal instead of a write-ahead
    log: there is one file, without copies of personal data beside it, and it can be read from a read-only folder.
    With synchronous=EXTRA, and fullfsync on macOS, a change is on the disk when its transaction has ended.
    secure_delete overwrites removed data with zeros. With trusted_schema off, a schema cannot call functions with side
    effects.

    Args:
        path: The file. ":memory:" is a database that only this object sees; a fork or a pickle gets a copy.
        create: Whether to create an absent file, empty and readable by its owner alone.

    Raises:
        InputError: If the file is absent and `create` is False, or if it cannot be created.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool) -> None:
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            raise InputError(f"the store is {type(path).__name__}, expected a path, or {IN_MEMORY!r}")
        self._name = os.fspath(path)
        self._memory: sqlite3.Connection | None = None
        if self._name == IN_MEMORY:
            self._keep_in_memory(_connect(IN_MEMORY))
            return
        self._path = Path(self._name).absolute()  # stays the same file when the process changes its folder
        if create:
            _create_file(self._path, self._name)
        elif not self._path.is_file():
            raise InputError(f"{self._name!r} is not a file, expected an existing store; choose another path")

    def __str__(self) -> str:
        """Return the path as the caller wrote it, on one line, for messages."""
        return one_line(self._name)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, with an in-memory database as SQL statements and their values."""
        state = vars(self).copy()
        if self._memory is not None:
            with self.transaction("read") as connection:
                state["_memory"] = _copying_statements(connection)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes, and an in-memory database from its statements."""
        statements = state["_memory"]
        vars(self).update(state, _memory=None)
        if statements is not None:
            connection = _connect(IN_MEMORY)
            for statement, values in statements:
                connection.execute(statement, values)
            self._keep_in_memory(connection)

    @contextlib.contextmanager
    def transaction(self, access: Access) -> Iterator[sqlite3.Connection]:
        """Run a block in a transaction, which is rolled back on an exception and committed otherwise.

        Args:
            access: Whether the block only reads, or also writes.

        Yields:
            The connection.

        Raises:
            InputError: If the file cannot be used; the message says why.
        """
        try:
            with _LOCK, self._connected() as connection:
                try:
                    _begin(connection, access)
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        connection.rollback()
                    raise
        # Python decodes SQLite's messages, which may contain pieces of a damaged file.
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._explain(error) from error

    def _keep_in_memory(self, connection: sqlite3.Connection) -> None:
        self._memory = connection
        weakref.finalize(self, connection.close)  # Python 3.13 warns of connections that nobody closed

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if self._memory is None:
            with contextlib.closing(_connect(f"{_sqlite_uri(self._path)}?mode=rw")) as connection:
                yield connection
            return
        yield self._memory

    def _explain(self, error: Exception) -> InputError:
        message = one_line(str(error))
        explanation = next((text for part, text in _EXPLANATIONS.items() if part in message), None)
        return InputError(f"{self} {explanation or 'cannot be used; try again'} ({message})")


def damaged(store: str, reason: str) -> InputError:
    """Return the error for a store whose content this package never writes."""
    return InputError(f"{store} is damaged: {reason}; {_REMEDY}")


def _sqlite_uri(path: PurePath) -> str:
    """Return the URI of an absolute path; unlike `as_uri`, a Windows share is part of the path, not the host."""
    uri = path.as_uri()
    return uri if uri.startswith("file:///") else uri.replace("file://", "file:////", 1)


def _connect(uri: str) -> sqlite3.Connection:
    # Without an isolation level, transactions are explicit. Only the in-memory connection is used by several threads.
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")  # does not read the file; ignored before SQLite 3.31
    return connection


def _copying_statements(connection: sqlite3.Connection) -> list[tuple[str, tuple[Any, ...]]]:
    """Return statements, with their values, that make a copy of a database; `iterdump` cuts texts at a NUL."""
    copying: list[tuple[str, tuple[Any, ...]]] = []
    for name in ("application_id", "user_version"):
        (value,) = connection.execute(f"PRAGMA {name}").fetchone()
        copying.append((f"PRAGMA {name} = {value}", ()))
    counters = "sqlite_sequence"  # filled by the rows of the other tables, so it comes last
    tables = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name = ?", (counters,)).fetchall()
    for name, sql in tables:
        copying.append((f"DELETE FROM {counters}" if name == counters else sql, ()))  # noqa: S608 - constant
        rows = connection.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608 - a table of ours
        copying += [(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row) for row in rows]  # noqa: S608
    return copying


def _begin(connection: sqlite3.Connection, access: Access) -> None:
    """Begin a transaction; wait while another process has locked the file.

    SQLite's own busy handler polls as rarely as every 0.1 s, so it may never see the pauses of a busy writer.
    """
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    connection.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            if access == "write":
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA fullfsync = ON")  # of macOS; its fsync leaves the data in the drive's cache
                connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE" if access == "write" else "BEGIN")
            connection.execute("PRAGMA schema_version").fetchone()  # takes the lock of a read transaction
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            connection.rollback()
        time.sleep(random.uniform(0.001, 0.004))  # noqa: S311 - no secret; keeps two waiting processes out of step
    # From here on only readers can be in the way, and they finish soon.
    connection.execute(f"PRAGMA busy_timeout = {_TIMEOUT_SECONDS * 1000:.0f}")


def _create_file(path: Path, name: str) -> None:
    with _LOCK:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            if not path.is_file():
                raise InputError(
                    f"{name!r} is not a file, expected a file or a new path; choose another path"
                ) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"cannot create {name!r}: {reason}; choose a path in a writable folder") from error
