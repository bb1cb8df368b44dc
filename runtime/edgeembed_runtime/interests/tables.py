"""The tables of a store of interests: made, checked and read on a connection that is in a transaction."""

import math
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.interests.centres import Centre, Kind

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x4545494E  # "EEIN", in the file's header: tells a store from any other SQLite file
_STORE = """
CREATE TABLE store (
    encoder_name TEXT NOT NULL, encoder_fingerprint TEXT NOT NULL, dimension INTEGER NOT NULL,
    reactions INTEGER NOT NULL
)
"""
# AUTOINCREMENT never gives a forgotten centre's number to another, which the user would then forget unseen.
_CENTRES = """
CREATE TABLE centres (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, example TEXT NOT NULL,
    uses INTEGER NOT NULL, views INTEGER NOT NULL, viewed_seconds REAL NOT NULL,
    first_used REAL NOT NULL, last_used REAL NOT NULL, vector BLOB NOT NULL
)
"""
_COLUMNS = "kind, example, uses, views, viewed_seconds, first_used, last_used, vector"


@dataclass(frozen=True)
class EncoderIdentity:
    """Which encoder's vectors a store holds: those of another mean something else.

    Attributes:
        name: Its bundle's name.
        fingerprint: Its bundle's fingerprint.
        dimension: The length of its vectors.
    """

    name: str
    fingerprint: str
    dimension: int


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether the database is a new one, without any table."""
    is_unmarked = _pragma(connection, "application_id") == _pragma(connection, "user_version") == 0
    return is_unmarked and connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def fill(connection: sqlite3.Connection, encoder: EncoderIdentity) -> None:
    """Make the tables, unless another process was faster."""
    if not is_empty(connection):
        return
    connection.execute(_STORE)
    connection.execute(_CENTRES)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("INSERT INTO store VALUES (?, ?, ?, 0)", (encoder.name, encoder.fingerprint, encoder.dimension))


def read_encoder(connection: sqlite3.Connection, store: str) -> EncoderIdentity:
    """Give whose vectors the store holds.

    Args:
        connection: A transaction.
        store: What the store is called in messages.

    Raises:
        InputError: If the database is no store that this version reads.
    """
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise InputError(f"{store} is no store of interests, but another SQLite file; give another path")
    if (version := _pragma(connection, "user_version")) != SCHEMA_VERSION:
        raise InputError(f"{store} has schema version {version}, expected {SCHEMA_VERSION}; upgrade edgeembed-runtime")
    row = connection.execute("SELECT encoder_name, encoder_fingerprint, dimension FROM store").fetchone()
    if row is None or [type(value) for value in row] != [str, str, int] or row[2] < 1:
        raise _damaged(store, "it does not say which encoder it belongs to")
    return EncoderIdentity(*row)


def read_centres(
    connection: sqlite3.Connection, store: str, dimension: int, weigh: Callable[[int, float, float], float]
) -> list[Centre]:
    """Give all centres, the oldest first.

    Args:
        connection: A transaction.
        store: What the store is called in messages.
        dimension: The length of a vector.
        weigh: Gives a centre's weight from its uses, viewed seconds and last use.

    Raises:
        InputError: If a row holds what was never written.
    """
    rows = connection.execute(f"SELECT id, {_COLUMNS} FROM centres ORDER BY id").fetchall()  # noqa: S608 - fixed
    for number, *fields in rows:
        if not _is_sound(fields, dimension):
            raise _damaged(store, f"the centre {number} has a field that cannot be")
    vectors = np.frombuffer(b"".join(row[-1] for row in rows), dtype="<f4").astype(np.float32)
    vectors = vectors.reshape(len(rows), dimension)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    if not (np.abs(lengths - 1) < 1e-3).all():
        raise _damaged(store, "a vector has not the length 1")
    return [_centre(row, vector, weigh) for row, vector in zip(rows, vectors, strict=True)]


def add_centre(
    connection: sqlite3.Connection,
    kind: Kind,
    example: str,
    vector: npt.NDArray[np.float32],
    now: float,
    viewed_seconds: float | None = None,
) -> int:
    """Add a centre of one use, or if it was viewed of one view, and give its number."""
    counts = (1, 0, 0.0) if viewed_seconds is None else (0, 1, viewed_seconds)
    inserted = connection.execute(
        f"INSERT INTO centres ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - fixed
        (kind, example, *counts, now, now, as_blob(vector)),
    )
    assert inserted.lastrowid is not None  # noqa: S101 - an INSERT gives one
    return inserted.lastrowid


def as_blob(vector: npt.NDArray[np.float32]) -> bytes:
    """Give a vector as it is stored: little-endian float32."""
    return vector.astype("<f4").tobytes()


def _is_sound(fields: list[Any], dimension: int) -> bool:
    if [type(value) for value in fields] != [str, str, int, int, float, float, float, bytes]:
        return False
    kind, _, uses, views, viewed_seconds, first_used, last_used, blob = fields
    if kind not in ("interest", "disinterest") or len(blob) != 4 * dimension:
        return False
    is_finite = all(math.isfinite(number) for number in (viewed_seconds, first_used, last_used))
    return is_finite and min(uses, views, viewed_seconds) >= 0


def _centre(
    row: tuple[Any, ...], vector: npt.NDArray[np.float32], weigh: Callable[[int, float, float], float]
) -> Centre:
    number, kind, example, uses, views, viewed_seconds, first_used, last_used, _ = row
    weight = weigh(uses, viewed_seconds, last_used)
    return Centre(number, kind, example, uses, views, viewed_seconds, first_used, last_used, weight, vector)


def _damaged(store: str, why: str) -> InputError:
    return InputError(f"{store} is damaged: {why}; restore it from a backup, or remove it and start anew")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)
