"""The tables of an interest store, and all SQL statements that read or change them."""

import math
import secrets
import sqlite3
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.errors import InputError, one_line, short_repr
from edgeembed_runtime.interests.centers import Center, InterestSettings, Kind
from edgeembed_runtime.interests.database import damaged

SCHEMA_VERSION = 4

_APPLICATION_ID = 0x4545494E  # "EEIN", in the file's header: distinguishes a store from any other SQLite file
# Each center repeats the random id of its store: SQLite may write pages of another store into this file if its rollback
# journal lies beside it, after a file was restored or renamed by hand.
# AUTOINCREMENT never reuses the id of a removed center, so `forget` cannot remove a center that the user never saw.
_TABLES = {
    "store": """CREATE TABLE store (
    encoder_name TEXT NOT NULL, encoder_fingerprint TEXT NOT NULL, dimension INTEGER NOT NULL, space TEXT,
    reactions INTEGER NOT NULL, store_id INTEGER NOT NULL,
    near_cosine REAL NOT NULL, max_centers INTEGER NOT NULL, shift REAL NOT NULL, horizon_days REAL NOT NULL,
    seconds_per_use REAL NOT NULL, min_read_seconds REAL NOT NULL, max_view_seconds REAL NOT NULL,
    query_weight REAL NOT NULL
)""",
    "centers": """CREATE TABLE centers (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, example TEXT NOT NULL,
    uses INTEGER NOT NULL, views INTEGER NOT NULL, view_seconds REAL NOT NULL,
    first_used REAL NOT NULL, last_used REAL NOT NULL, vector BLOB NOT NULL, store_id INTEGER NOT NULL
)""",
}
# SQLite stores the text of each CREATE statement, and adds the table sqlite_sequence for AUTOINCREMENT.
_SCHEMA = {**_TABLES, "sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)"}

_SETTINGS = tuple(setting.name for setting in fields(InterestSettings))  # the columns of the same names, in this order
_COLUMNS = "kind, example, uses, views, view_seconds, first_used, last_used, vector"
_NORM_TOLERANCE = 1e-3


def is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether the database is new: not marked as a store, and without tables."""
    is_unmarked = _pragma(connection, "application_id") == _pragma(connection, "user_version") == 0
    return is_unmarked and connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def create_tables(connection: sqlite3.Connection, encoder: EncoderIdentity, settings: InterestSettings) -> None:
    """Create the tables of a store for an encoder, unless another process has just created them.

    Args:
        connection: A connection in a transaction.
        encoder: The encoder.
        settings: The settings; `near_cosine` is not None.
    """
    if not is_empty(connection):
        return
    for statement in _TABLES.values():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    values = (*encoder, secrets.randbits(63), *_setting_values(settings))
    connection.execute(f"INSERT INTO store VALUES (?, ?, ?, ?, 0, ?{', ?' * len(_SETTINGS)})", values)  # noqa: S608 - constant


def read_encoder(connection: sqlite3.Connection, store: str) -> EncoderIdentity:
    """Check that a database is a valid store, and return the encoder that it belongs to."""
    _check_schema(connection, store)
    columns = "encoder_name, encoder_fingerprint, dimension, space, reactions"
    rows = connection.execute(f"SELECT {columns} FROM store").fetchmany(2)  # noqa: S608 - constant
    types = [type(value) for row in rows for value in row]
    if types not in ([str, str, int, str, int], [str, str, int, type(None), int]) or rows[0][2] < 1:
        raise damaged(store, "it does not name the encoder that it belongs to")
    *encoder, reactions = rows[0]
    (counted,) = connection.execute("SELECT COALESCE(SUM(uses + views), 0) FROM centers").fetchone()
    if counted != reactions:
        raise damaged(store, f"it counts {reactions} reactions, but its centers add up to {one_line(str(counted))}")
    others = "SELECT count(*) FROM centers WHERE store_id IS NOT (SELECT store_id FROM store)"
    if connection.execute(others).fetchone() != (0,):
        raise damaged(store, "it contains centers of another store")
    return EncoderIdentity(*encoder)


def read_settings(connection: sqlite3.Connection, store: str) -> InterestSettings:
    """Return the settings of a store that `read_encoder` has checked.

    Raises:
        InputError: If one of them is invalid.
    """
    (values,) = connection.execute(f"SELECT {', '.join(_SETTINGS)} FROM store").fetchall()  # noqa: S608 - constant
    for name, value in zip(_SETTINGS, values, strict=True):
        if type(value) is not (int if name == "max_centers" else float):
            raise damaged(store, f"its setting {name} is {short_repr(value)}")
    try:
        return InterestSettings(**dict(zip(_SETTINGS, values, strict=True)))
    except InputError as error:
        raise damaged(store, f"its setting {error}") from error


def write_settings(connection: sqlite3.Connection, settings: InterestSettings) -> None:
    """Replace the settings of a store; `near_cosine` is not None."""
    columns = ", ".join(f"{name} = ?" for name in _SETTINGS)
    connection.execute(f"UPDATE store SET {columns}", _setting_values(settings))  # noqa: S608 - constant


def read_reactions(connection: sqlite3.Connection) -> int:
    """Return the number of reactions: the uses and views of all centers."""
    (reactions,) = connection.execute("SELECT reactions FROM store").fetchone()
    return int(reactions)


def read_centers(
    connection: sqlite3.Connection, store: str, dimension: int
) -> list[tuple[tuple[Any, ...], npt.NDArray[np.float32]]]:
    """Return the columns and the vector of each center, the oldest first.

    Args:
        connection: A connection in a transaction.
        store: The store's name for messages.
        dimension: The dimension of the vectors.

    Returns:
        For each center, (id, kind, example, uses, views, view_seconds, first_used, last_used), and its vector,
        (dimension,) float32.

    Raises:
        InputError: If a row has an invalid value.
    """
    rows = connection.execute(f"SELECT id, {_COLUMNS} FROM centers ORDER BY id").fetchall()  # noqa: S608 - constant
    for identifier, *values in rows:
        if not _is_valid_row(values, dimension):
            raise damaged(store, f"center {identifier} has an invalid value")
    vectors = np.frombuffer(b"".join(row[-1] for row in rows), dtype="<f4").astype(np.float32)
    vectors = vectors.reshape(len(rows), dimension)
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    if not (np.abs(norms - 1) < _NORM_TOLERANCE).all():
        raise damaged(store, "a vector is not L2-normalized")
    return [(row[:-1], vector) for row, vector in zip(rows, vectors, strict=True)]


def insert_center(
    connection: sqlite3.Connection,
    kind: Kind,
    example: str,
    vector: npt.NDArray[np.float32],
    now: float,
    view_seconds: float | None = None,
) -> int:
    """Insert a center with one use, or with one view if `view_seconds` is set, and return its id."""
    _count_reaction(connection)
    counts = (1, 0, 0.0) if view_seconds is None else (0, 1, view_seconds)
    inserted = connection.execute(
        f"INSERT INTO centers ({_COLUMNS}, store_id) "  # noqa: S608 - constant
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT store_id FROM store))",
        (kind, example, *counts, now, now, _to_blob(vector)),
    )
    assert inserted.lastrowid is not None  # noqa: S101 - every INSERT sets it
    return inserted.lastrowid


def add_use(connection: sqlite3.Connection, center: int, last_used: float, vector: npt.NDArray[np.float32]) -> None:
    """Add one use to a center, and replace its vector and the time of its last use."""
    _count_reaction(connection)
    connection.execute(
        "UPDATE centers SET uses = uses + 1, last_used = ?, vector = ? WHERE id = ?",
        (last_used, _to_blob(vector), center),
    )


def add_view(connection: sqlite3.Connection, center: int, last_used: float, seconds: float) -> None:
    """Add one view to a center, and replace the time of its last use."""
    _count_reaction(connection)
    connection.execute(
        "UPDATE centers SET views = views + 1, view_seconds = view_seconds + ?, last_used = ? WHERE id = ?",
        (seconds, last_used, center),
    )


def replace_two_centers(connection: sqlite3.Connection, merged: Center, absorbed: int) -> None:
    """Write a merged center to the row of its id, and delete the row of the center that it absorbed."""
    connection.execute(
        "UPDATE centers SET example = ?, uses = ?, views = ?, view_seconds = ?, first_used = ?, last_used = ?, "
        "vector = ? WHERE id = ?",
        (
            merged.example,
            merged.uses,
            merged.views,
            merged.view_seconds,
            merged.first_used,
            merged.last_used,
            _to_blob(merged.vector),
            merged.id,
        ),
    )
    _delete_row(connection, absorbed)


def reactions_by_center(connection: sqlite3.Connection) -> dict[int, int]:
    """Return the number of uses and views of each center, by its id."""
    return dict(connection.execute("SELECT id, uses + views FROM centers"))


def delete_center(connection: sqlite3.Connection, center: int, reactions: int) -> None:
    """Delete a center that has this number of uses and views."""
    _delete_row(connection, center)
    connection.execute("UPDATE store SET reactions = reactions - ?", (reactions,))


def delete_all_centers(connection: sqlite3.Connection) -> int:
    """Delete all centers, and return how many there were."""
    count = connection.execute("DELETE FROM centers").rowcount
    connection.execute("UPDATE store SET reactions = 0")
    return count


def _check_schema(connection: sqlite3.Connection, store: str) -> None:
    """Check that the schema is exactly the one that `create_tables` creates.

    Call this before reading a table: a view in place of a table may never end, and a trigger may change what a
    reaction writes.

    Args:
        connection: A connection in a transaction.
        store: The store's name for messages.

    Raises:
        InputError: If the database is not a store, has another schema version, or has other tables, columns, views or
            triggers.
    """
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise InputError(f"{store} is an SQLite file but not a store of interests; choose another path")
    version = _pragma(connection, "user_version")
    if version > SCHEMA_VERSION:
        raise InputError(f"{store} has schema version {version}, expected {SCHEMA_VERSION}; upgrade edgeembed-runtime")
    if version < SCHEMA_VERSION:
        raise InputError(
            f"{store} has schema version {version}, expected {SCHEMA_VERSION}: an older release wrote it; remove it to "
            "start a new one, or choose another path"
        )
    expected = {("table", name, sql) for name, sql in _SCHEMA.items()}
    stored = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchmany(len(expected) + 1)
    if missing := sorted(name for _, name, _ in expected.difference(stored)):
        raise damaged(store, f"the table {missing[0]} is missing or has other columns")
    if extra := [entry for entry in stored if entry not in expected]:
        kind, name, _ = extra[0]
        raise damaged(store, f"it contains the {one_line(str(kind))} {short_repr(name)}, which no store has")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _count_reaction(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE store SET reactions = reactions + 1")


def _delete_row(connection: sqlite3.Connection, center: int) -> None:
    connection.execute("DELETE FROM centers WHERE id = ?", (center,))


def _setting_values(settings: InterestSettings) -> tuple[float, ...]:
    """Return settings in the order of their columns."""
    return tuple(getattr(settings, name) for name in _SETTINGS)


def _to_blob(vector: npt.NDArray[np.float32]) -> bytes:
    """Return a vector as it is stored: little-endian float32."""
    return vector.astype("<f4").tobytes()


def _is_valid_row(values: list[Any], dimension: int) -> bool:
    if [type(value) for value in values] != [str, str, int, int, float, float, float, bytes]:
        return False
    kind, _, uses, views, view_seconds, first_used, last_used, blob = values
    if kind not in ("interest", "disinterest") or len(blob) != 4 * dimension:
        return False
    is_finite = all(math.isfinite(number) for number in (view_seconds, first_used, last_used))
    return is_finite and min(uses, views, view_seconds) >= 0
