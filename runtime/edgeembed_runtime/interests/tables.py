"""The tables of an interest store: creating, checking and reading them on a connection in a transaction."""

import math
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.interests.centers import Center, Kind
from edgeembed_runtime.interests.messages import one_line, shown
from edgeembed_runtime.interests.sqlite import START_ANEW

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x4545494E  # "EEIN", in the file's header: tells a store from any other SQLite file
# AUTOINCREMENT never gives a forgotten center's number to another center, which the user might then forget unseen.
_TABLES = {
    "store": """CREATE TABLE store (
    encoder_name TEXT NOT NULL, encoder_fingerprint TEXT NOT NULL, dimension INTEGER NOT NULL,
    reactions INTEGER NOT NULL
)""",
    "centers": """CREATE TABLE centers (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, example TEXT NOT NULL,
    uses INTEGER NOT NULL, views INTEGER NOT NULL, viewed_seconds REAL NOT NULL,
    first_used REAL NOT NULL, last_used REAL NOT NULL, vector BLOB NOT NULL
)""",
}
# SQLite keeps the text of each CREATE statement, and makes the last of these tables for AUTOINCREMENT.
_SCHEMA = {**_TABLES, "sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)"}
_COLUMNS = "kind, example, uses, views, viewed_seconds, first_used, last_used, vector"


@dataclass(frozen=True)
class EncoderIdentity:
    """The encoder whose vectors a store holds; vectors of different encoders cannot be compared.

    Attributes:
        name: The name of its bundle.
        fingerprint: The fingerprint of its bundle.
        dimension: The length of its vectors.
    """

    name: str
    fingerprint: str
    dimension: int


def is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether the database is new: not marked as a store, and without any table."""
    is_unmarked = _pragma(connection, "application_id") == _pragma(connection, "user_version") == 0
    return is_unmarked and connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def fill(connection: sqlite3.Connection, encoder: EncoderIdentity) -> None:
    """Create the tables, unless another process has just done so."""
    if not is_empty(connection):
        return
    for statement in _TABLES.values():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("INSERT INTO store VALUES (?, ?, ?, 0)", (encoder.name, encoder.fingerprint, encoder.dimension))


def check_store(connection: sqlite3.Connection, store: str) -> EncoderIdentity:
    """Check that a database is a sound store, and return the encoder it belongs to.

    No table is read before the schema is known to be exactly what `fill` creates: a view in place of a table may
    compute for ever, and a trigger may change what a reaction writes.

    Args:
        connection: A connection in a transaction.
        store: The store's name for messages.

    Raises:
        InputError: If the database is not a store that this version reads, has other tables, views, triggers or
            columns, or counts other reactions than its centers do.
    """
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise InputError(f"{store} is another SQLite file, expected a store of interests; give another path")
    if (version := _pragma(connection, "user_version")) != SCHEMA_VERSION:
        raise InputError(f"{store} has schema version {version}, expected {SCHEMA_VERSION}; upgrade edgeembed-runtime")
    _check_schema(connection, store)
    rows = connection.execute("SELECT encoder_name, encoder_fingerprint, dimension, reactions FROM store").fetchmany(2)
    if len(rows) != 1 or [type(value) for value in rows[0]] != [str, str, int, int] or rows[0][2] < 1:
        raise _damaged(store, "it does not say which encoder it belongs to")
    *encoder, reactions = rows[0]
    (counted,) = connection.execute("SELECT COALESCE(SUM(uses + views), 0) FROM centers").fetchone()
    if counted != reactions:
        raise _damaged(store, f"it counts {reactions} reactions and its centers {one_line(str(counted))}")
    return EncoderIdentity(*encoder)


def read_centers(
    connection: sqlite3.Connection, store: str, dimension: int, weigh: Callable[[int, float, float], float]
) -> list[Center]:
    """Return all centers, the oldest first.

    Args:
        connection: A connection in a transaction.
        store: The store's name for messages.
        dimension: The length of a vector.
        weigh: Returns a center's weight, given its uses, viewed seconds and last use.

    Raises:
        InputError: If a row has a value that this package never writes.
    """
    rows = connection.execute(f"SELECT id, {_COLUMNS} FROM centers ORDER BY id").fetchall()  # noqa: S608 - fixed
    for number, *fields in rows:
        if not _is_sound(fields, dimension):
            raise _damaged(store, f"center {number} has an impossible value")
    vectors = np.frombuffer(b"".join(row[-1] for row in rows), dtype="<f4").astype(np.float32)
    vectors = vectors.reshape(len(rows), dimension)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    if not (np.abs(lengths - 1) < 1e-3).all():
        raise _damaged(store, "a vector is not L2-normalized")
    return [_center(row, vector, weigh) for row, vector in zip(rows, vectors, strict=True)]


def add_center(
    connection: sqlite3.Connection,
    kind: Kind,
    example: str,
    vector: npt.NDArray[np.float32],
    now: float,
    viewed_seconds: float | None = None,
) -> int:
    """Add a center with one use, or with one view if `viewed_seconds` is given, and return its number."""
    counts = (1, 0, 0.0) if viewed_seconds is None else (0, 1, viewed_seconds)
    inserted = connection.execute(
        f"INSERT INTO centers ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - fixed
        (kind, example, *counts, now, now, as_blob(vector)),
    )
    assert inserted.lastrowid is not None  # noqa: S101 - an INSERT gives one
    return inserted.lastrowid


def as_blob(vector: npt.NDArray[np.float32]) -> bytes:
    """Return a vector in its stored form: little-endian float32."""
    return vector.astype("<f4").tobytes()


def _check_schema(connection: sqlite3.Connection, store: str) -> None:
    expected = {("table", name, sql) for name, sql in _SCHEMA.items()}
    found = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchmany(len(expected) + 1)
    if missing := sorted(name for _, name, _ in expected.difference(found)):
        raise _damaged(store, f"the table {missing[0]} is missing or has other columns")
    if extra := [each for each in found if each not in expected]:
        kind, name, _ = extra[0]
        raise _damaged(store, f"it holds the {one_line(str(kind))} {shown(name)}, which is no part of a store")


def _is_sound(fields: list[Any], dimension: int) -> bool:
    if [type(value) for value in fields] != [str, str, int, int, float, float, float, bytes]:
        return False
    kind, _, uses, views, viewed_seconds, first_used, last_used, blob = fields
    if kind not in ("interest", "disinterest") or len(blob) != 4 * dimension:
        return False
    is_finite = all(math.isfinite(number) for number in (viewed_seconds, first_used, last_used))
    return is_finite and min(uses, views, viewed_seconds) >= 0


def _center(
    row: tuple[Any, ...], vector: npt.NDArray[np.float32], weigh: Callable[[int, float, float], float]
) -> Center:
    number, kind, example, uses, views, viewed_seconds, first_used, last_used, _ = row
    weight = weigh(uses, viewed_seconds, last_used)
    return Center(number, kind, example, uses, views, viewed_seconds, first_used, last_used, weight, vector)


def _damaged(store: str, why: str) -> InputError:
    return InputError(f"{store} is damaged: {why}; {START_ANEW}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)
