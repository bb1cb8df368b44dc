"""The store of a user's centres of interest: one SQLite file."""

import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.interests.centres import (
    Centre,
    InterestSettings,
    Kind,
    as_unit,
    check_number,
    moved,
    nearest,
    weight,
)
from edgeembed_runtime.interests.database import Access, Database
from edgeembed_runtime.interests.tables import (
    SCHEMA_VERSION,
    EncoderIdentity,
    add_centre,
    as_blob,
    fill,
    is_empty,
    read_centres,
    read_encoder,
)

_EXAMPLE_CHARACTERS = 120


class InterestStore:
    """Centres of interest in an SQLite file, which several threads and processes may use.

    It takes vectors and loads no model; `SemanticRanker` says what each reaction does. A reaction is one
    transaction: once the call has returned it is on the disk, and a process that is killed before that leaves the
    store as if the reaction had never been. The file holds the vectors of the centres, counts and times, and of each
    centre the first 120 characters of the text that started it; its permissions are the user's alone.

    Args:
        path: The file, or ":memory:".
        encoder: Whose vectors the store holds; it is created if it is absent. None opens a store that exists,
            whichever encoder it belongs to.
        settings: How reactions become centres; None stands for the defaults.
        clock: Gives the time in seconds since the epoch.

    Raises:
        InputError: If the file is no store, is damaged, is of a newer version, or belongs to another encoder.
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
            raise InputError(f"the clock is {type(clock).__name__}, expected what gives seconds since the epoch")
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
        """Whose vectors the store holds."""
        return self._encoder

    def like(self, text: str, vector: npt.ArrayLike) -> int:
        """Add a like to the nearest interest, or start one.

        Args:
            text: Is kept, shortened, as the example of a centre that it starts; "" keeps none.
            vector: The text's, (dimension,).

        Returns:
            The number of the centre that took it.

        Raises:
            InputError: If the vector is none of the encoder's, or the store cannot be written.
        """
        return self._use("interest", text, vector)

    def dislike(self, text: str, vector: npt.ArrayLike) -> int:
        """Add a dislike to the nearest disinterest, or start one; otherwise as `like`."""
        return self._use("disinterest", text, vector)

    def viewed(self, text: str, vector: npt.ArrayLike, seconds: float) -> int | None:
        """Add viewing time to the nearest interest, or start one if it was more than a glance.

        Args:
            text: As in `like`.
            vector: As in `like`.
            seconds: How long the text was viewed.

        Returns:
            The number of the centre that took it, or None for a glance at something new, which changes nothing.

        Raises:
            InputError: As `like`, or if `seconds` is no finite number of at least 0.
        """
        check_number("seconds", seconds)
        counted = min(float(seconds), self._settings.longest_view_seconds)
        is_read = seconds >= self._settings.reading_seconds
        example, unit, now = _example(text), as_unit(vector, self._encoder.dimension), self._now()
        with self._open("write") as (connection, encoder):
            centre = nearest(self._centres(connection, encoder, now), "interest", unit, self._settings)
            if centre is None and not is_read:
                return None
            _count_reaction(connection)
            if centre is None:
                return add_centre(connection, "interest", example, unit, now, viewed_seconds=counted)
            connection.execute(
                "UPDATE centres SET views = views + 1, viewed_seconds = viewed_seconds + ?, last_used = ? WHERE id = ?",
                (counted, now if is_read else centre.last_used, centre.id),
            )
            return centre.id

    def centres(self) -> list[Centre]:
        """Give all centres, the oldest first.

        Raises:
            InputError: If the store cannot be read.
        """
        now = self._now()
        with self._open("read") as (connection, encoder):
            return self._centres(connection, encoder, now)

    def export(self) -> dict[str, Any]:
        """Give all that the store holds, as what JSON can say.

        Raises:
            InputError: If the store cannot be read.
        """
        now = self._now()
        with self._open("read") as (connection, encoder):
            centres = self._centres(connection, encoder, now)
            (reactions,) = connection.execute("SELECT reactions FROM store").fetchone()
        return {
            "schema_version": SCHEMA_VERSION,
            "encoder": asdict(encoder),
            "reactions": reactions,
            "centres": [{**asdict(centre), "vector": centre.vector.tolist()} for centre in centres],
        }

    def forget(self, *centres: int) -> None:
        """Remove centres, all of them or on an error none, and overwrite what the file held of them.

        Args:
            centres: Their numbers.

        Raises:
            InputError: If there is no such centre, or the store cannot be written.
        """
        with self._open("write") as (connection, _):
            reactions = dict(connection.execute("SELECT id, uses + views FROM centres"))
            if unknown := [centre for centre in centres if centre not in list(reactions)]:
                raise InputError(f"{self._database} holds no centre {unknown[0]!r}, expected a number that it lists")
            for number in reactions.keys() & set(centres):
                connection.execute("DELETE FROM centres WHERE id = ?", (number,))
                connection.execute("UPDATE store SET reactions = reactions - ?", (reactions[number],))

    def forget_all(self) -> int:
        """Remove all centres, and overwrite what the file held of them.

        Returns:
            How many there were.

        Raises:
            InputError: If the store cannot be written.
        """
        with self._open("write") as (connection, _):
            count = connection.execute("DELETE FROM centres").rowcount
            connection.execute("UPDATE store SET reactions = 0")
        return count

    def _use(self, kind: Kind, text: str, vector: npt.ArrayLike) -> int:
        example, unit, now = _example(text), as_unit(vector, self._encoder.dimension), self._now()
        with self._open("write") as (connection, encoder):
            _count_reaction(connection)
            centre = nearest(self._centres(connection, encoder, now), kind, unit, self._settings)
            if centre is None:
                return add_centre(connection, kind, example, unit, now)
            connection.execute(
                "UPDATE centres SET uses = uses + 1, last_used = ?, vector = ? WHERE id = ?",
                (now, as_blob(moved(centre, unit, self._settings)), centre.id),
            )
            return centre.id

    @contextmanager
    def _open(self, access: Access) -> Iterator[tuple[sqlite3.Connection, EncoderIdentity]]:
        """Give a transaction on the file, checked each time: another one may be in its place by now."""
        with self._database.transaction(access) as connection:
            encoder = read_encoder(connection, str(self._database))
            if self._expected is not None and encoder != self._expected:
                raise InputError(
                    f"{self._database} belongs to the encoder {_named(encoder)}, expected {_named(self._expected)}; "
                    "give that encoder, or another path for a new store"
                )
            yield connection, encoder

    def _centres(self, connection: sqlite3.Connection, encoder: EncoderIdentity, now: float) -> list[Centre]:
        def weigh(uses: int, viewed_seconds: float, last_used: float) -> float:
            return weight(uses, viewed_seconds, now - last_used, self._settings)

        return read_centres(connection, str(self._database), encoder.dimension, weigh)

    def _now(self) -> float:
        now = self._clock()
        if isinstance(now, bool) or not isinstance(now, int | float) or not math.isfinite(now):
            raise InputError(f"the clock gives {now!r}, expected seconds since the epoch")
        return float(now)


def _count_reaction(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE store SET reactions = reactions + 1")


def _example(text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"the text is {type(text).__name__}, expected str")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("the text holds half of a surrogate pair, which is no character; remove it") from None
    return " ".join(text.split())[:_EXAMPLE_CHARACTERS]


def _named(encoder: EncoderIdentity) -> str:
    return f"{encoder.name!r} ({encoder.fingerprint[:12]})"
