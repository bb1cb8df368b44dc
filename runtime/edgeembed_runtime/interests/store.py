"""The store of a user's centers of interest: one SQLite file."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.interests.centers import (
    Center,
    InterestSettings,
    Kind,
    as_unit,
    check_number,
    moved,
    nearest,
    weight,
)
from edgeembed_runtime.interests.messages import one_line, shown
from edgeembed_runtime.interests.sqlite import Access, Database
from edgeembed_runtime.interests.tables import (
    SCHEMA_VERSION,
    EncoderIdentity,
    add_center,
    as_blob,
    check_store,
    fill,
    is_empty,
    read_centers,
)

_EXAMPLE_CHARACTERS = 120
_LATEST = 253_402_300_799  # 9999-12-31T23:59:59Z, the last second of the dates that Python and SQLite know


class InterestStore:
    """Centers of interest in an SQLite file that threads and processes may share.

    The store takes vectors and loads no model; `SemanticRanker` documents what each reaction does. A reaction is one
    transaction: it is on the disk when the call returns, and a process that is killed earlier leaves the store
    without it. The file holds the vectors of the centers, counts, times, and of each center the first 120 characters
    of the text that started it; only its owner may read it. Each transaction first checks that the file has the
    tables of a store and nothing else, and that the uses and views of the centers add up to the number of reactions,
    which is counted apart.

    Args:
        path: The file, or ":memory:".
        encoder: The encoder that the store belongs to; an absent store is created. None opens an existing store of
            any encoder.
        settings: The constants; None takes the defaults.
        clock: Returns the time in seconds since the epoch, from 0 (1970) to the end of the year 9999. If it goes
            backwards, no last use is set back.

    Raises:
        InputError: If the file is not a store, is damaged, has a newer version, or belongs to another encoder.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        encoder: EncoderIdentity | None = None,
        *,
        settings: InterestSettings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if settings is not None and not isinstance(settings, InterestSettings):
            raise InputError(f"the settings are {type(settings).__name__}, expected InterestSettings")
        if not callable(clock):
            raise InputError(
                f"the clock is {type(clock).__name__}, expected a function that returns seconds since the epoch"
            )
        self._settings = InterestSettings() if settings is None else settings
        self._clock = clock
        self._expected = encoder
        self._database = Database(path, create=encoder is not None)
        with self._database.transaction("read") as connection:
            is_new = is_empty(connection)
        if is_new and encoder is not None:
            with self._database.transaction("write") as connection:
                fill(connection, encoder)
        with self._open("read") as (_, found):
            self._encoder = found

    @property
    def encoder(self) -> EncoderIdentity:
        """The encoder that the store belongs to."""
        return self._encoder

    def like(self, text: str, vector: npt.ArrayLike) -> int:
        """Add a like to the nearest interest, or start an interest.

        Args:
            text: The text; shortened, it becomes the example of a center that it starts. "" stores no example.
            vector: The text's vector, (dimension,).

        Returns:
            The number of the center that the text joined or started.

        Raises:
            InputError: If the vector cannot be the encoder's, the clock returns no valid time, or the store cannot
                be written.
        """
        return self._use("interest", text, vector)

    def dislike(self, text: str, vector: npt.ArrayLike) -> int:
        """Add a dislike to the nearest disinterest, or start a disinterest; otherwise as `like`."""
        return self._use("disinterest", text, vector)

    def view(self, text: str, vector: npt.ArrayLike, seconds: float) -> int | None:
        """Add viewing time to the nearest interest, or start an interest if the view was more than a glance.

        Args:
            text: As in `like`.
            vector: As in `like`.
            seconds: How long the text was viewed.

        Returns:
            The number of the center, or None for a glance at something new, which changes nothing.

        Raises:
            InputError: As `like`, or if `seconds` is not a finite number of at least 0.
        """
        check_number("seconds", seconds)
        counted = min(float(seconds), self._settings.longest_view_seconds)
        is_read = seconds >= self._settings.reading_seconds
        example, unit, now = _example(text), as_unit(vector, self._encoder.dimension), self._now()
        with self._open("write") as (connection, encoder):
            center = nearest(self._centers(connection, encoder, now), "interest", unit, self._settings)
            if center is None and not is_read:
                return None
            _count_reaction(connection)
            if center is None:
                return add_center(connection, "interest", example, unit, now, viewed_seconds=counted)
            connection.execute(
                "UPDATE centers SET views = views + 1, viewed_seconds = viewed_seconds + ?, last_used = ? WHERE id = ?",
                (counted, max(center.last_used, now) if is_read else center.last_used, center.id),
            )
            return center.id

    def centers(self) -> list[Center]:
        """Return all centers, the oldest first.

        Raises:
            InputError: If the store cannot be read.
        """
        now = self._now()
        with self._open("read") as (connection, encoder):
            return self._centers(connection, encoder, now)

    def export(self) -> dict[str, Any]:
        """Return all that the store holds, as values that JSON can represent.

        Raises:
            InputError: If the store cannot be read.
        """
        now = self._now()
        with self._open("read") as (connection, encoder):
            centers = self._centers(connection, encoder, now)
            (reactions,) = connection.execute("SELECT reactions FROM store").fetchone()
        return {
            "schema_version": SCHEMA_VERSION,
            "encoder": asdict(encoder),
            "reactions": reactions,
            "centers": [{**asdict(center), "vector": center.vector.tolist()} for center in centers],
        }

    def forget(self, *centers: int) -> None:
        """Remove centers, all of them or on an error none, and overwrite their bytes in the file.

        Args:
            centers: Their numbers.

        Raises:
            InputError: If there is no such center, or the store cannot be written.
        """
        with self._open("write") as (connection, _):
            reactions = dict(connection.execute("SELECT id, uses + views FROM centers"))
            if unknown := [center for center in centers if center not in list(reactions)]:
                raise InputError(
                    f"{self._database} has no center {shown(unknown[0])}, expected the number of one that it has"
                )
            for number in reactions.keys() & set(centers):
                connection.execute("DELETE FROM centers WHERE id = ?", (number,))
                connection.execute("UPDATE store SET reactions = reactions - ?", (reactions[number],))

    def forget_all(self) -> int:
        """Remove all centers, and overwrite their bytes in the file.

        Returns:
            The number of centers removed.

        Raises:
            InputError: If the store cannot be written.
        """
        with self._open("write") as (connection, _):
            count = connection.execute("DELETE FROM centers").rowcount
            connection.execute("UPDATE store SET reactions = 0")
        return count

    def _use(self, kind: Kind, text: str, vector: npt.ArrayLike) -> int:
        example, unit, now = _example(text), as_unit(vector, self._encoder.dimension), self._now()
        with self._open("write") as (connection, encoder):
            _count_reaction(connection)
            center = nearest(self._centers(connection, encoder, now), kind, unit, self._settings)
            if center is None:
                return add_center(connection, kind, example, unit, now)
            connection.execute(
                "UPDATE centers SET uses = uses + 1, last_used = ?, vector = ? WHERE id = ?",
                (max(center.last_used, now), as_blob(moved(center, unit, self._settings)), center.id),
            )
            return center.id

    @contextmanager
    def _open(self, access: Access) -> Iterator[tuple[sqlite3.Connection, EncoderIdentity]]:
        """Return a transaction on the file, which is checked each time: another may have taken its place."""
        with self._database.transaction(access) as connection:
            encoder = check_store(connection, str(self._database))
            if self._expected is not None and encoder != self._expected:
                raise InputError(
                    f"{self._database} belongs to the encoder {_named(encoder)}, expected {_named(self._expected)}; "
                    "give that encoder, or another path for a new store"
                )
            yield connection, encoder

    def _centers(self, connection: sqlite3.Connection, encoder: EncoderIdentity, now: float) -> list[Center]:
        def weigh(uses: int, viewed_seconds: float, last_used: float) -> float:
            return weight(uses, viewed_seconds, now - last_used, self._settings)

        return read_centers(connection, str(self._database), encoder.dimension, weigh)

    def _now(self) -> float:
        now = self._clock()
        is_number = isinstance(now, int | float) and not isinstance(now, bool)
        if not is_number or not 0 <= now <= _LATEST:  # which refuses NaN, and compares whole numbers of any size
            raise InputError(
                f"the clock returned {shown(now)}, expected seconds since the epoch, from 0 (1970) to {_LATEST} (9999)"
            )
        return float(now)


def _count_reaction(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE store SET reactions = reactions + 1")


def _example(text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"the text is {type(text).__name__}, expected str")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("the text holds half of a surrogate pair, expected valid Unicode; remove it") from None
    return " ".join(text.split())[:_EXAMPLE_CHARACTERS]


def _named(encoder: EncoderIdentity) -> str:
    return f"{shown(encoder.name)} ({one_line(encoder.fingerprint[:12])})"
