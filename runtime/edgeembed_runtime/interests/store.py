"""The store of a user's centers of interest, in one SQLite file."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._validation import validate_number
from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.interests import sql
from edgeembed_runtime.interests.centers import (
    Center,
    InterestSettings,
    Kind,
    center_weight,
    cheapest_merge,
    is_expired,
    merge_centers,
    nearest_center,
    normalized_embedding,
    shifted_vector,
)
from edgeembed_runtime.interests.database import Access, Database

_EXAMPLE_CHARACTERS = 120
_MAX_TIME = 253_402_300_799  # 9999-12-31T23:59:59Z, the last second of the dates that Python and SQLite support


class InterestStore:
    """Centers of interest in an SQLite file that threads and processes may share.

    The store takes embeddings and loads no model. `SemanticRanker` documents what each reaction does. A reaction is
    one transaction: it is on the disk when the call returns, and a process that is killed earlier leaves the store
    unchanged. The file contains the vectors of the centers, counts, times, and the first 120 characters of the text
    that started each center. Only its owner may read it. Each transaction first checks that the file has the tables of
    a store and nothing else, and that the uses and views of the centers add up to the number of reactions, which is
    counted separately.

    A center that was not used for `InterestSettings.horizon_days` expires: `centers` no longer lists it, and the next
    change of the store removes it from the file. So a clock that is wrong by more than this into the future removes
    everything at the next change.

    Args:
        path: The file, or ":memory:".
        encoder: The encoder that the store belongs to; an absent store is created. None opens an existing store of
            any encoder.
        settings: The constants; None takes the defaults.
        clock: Returns the time in seconds since the epoch, from 0 (1970) to the end of the year 9999. If the clock
            goes backwards, no last use is set back.

    Raises:
        InputError: If the file is not a store, is damaged, has another schema version, or belongs to an encoder of
            another embedding space.
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
            is_new = sql.is_empty(connection)
        if is_new and encoder is not None:
            with self._database.transaction("write") as connection:
                sql.create_tables(connection, encoder)
        with self._open("read") as (_, stored):
            self._encoder = stored

    @property
    def encoder(self) -> EncoderIdentity:
        """The encoder that the store belongs to."""
        return self._encoder

    def like(self, text: str, embedding: npt.ArrayLike) -> int:
        """Add a like to the nearest interest, or start an interest.

        Args:
            text: The text. Its beginning becomes the example of a center that it starts; "" stores no example.
            embedding: The text's embedding, (dimension,).

        Returns:
            The id of the center that the text is in afterwards: the one that it joined or started, or the one that
            this was merged into because there were more than `max_centers`.

        Raises:
            InputError: If the embedding does not fit the encoder, the clock returns no valid time, or the store
                cannot be written.
        """
        return self._use("interest", text, embedding)

    def dislike(self, text: str, embedding: npt.ArrayLike) -> int:
        """Add a dislike to the nearest disinterest, or start a disinterest. Otherwise the same as `like`."""
        return self._use("disinterest", text, embedding)

    def view(self, text: str, embedding: npt.ArrayLike, seconds: float) -> int | None:
        """Add viewing time to the nearest interest, or start an interest if the view was more than a glance.

        Args:
            text: As in `like`.
            embedding: As in `like`.
            seconds: How long the text was viewed.

        Returns:
            The id of the center, or None for a glance at something new, which changes nothing.

        Raises:
            InputError: As in `like`, or if `seconds` is not a finite number of at least 0.
        """
        validate_number("seconds", seconds)
        counted = min(float(seconds), self._settings.max_view_seconds)
        is_read = seconds >= self._settings.min_read_seconds
        example, normalized, now = _example(text), normalized_embedding(embedding, self._encoder.dimension), self._now()
        with self._write(now) as (connection, encoder):
            center = nearest_center(self._centers(connection, encoder, now), "interest", normalized, self._settings)
            if center is None and not is_read:
                return None
            if center is None:
                started = sql.insert_center(connection, "interest", example, normalized, now, view_seconds=counted)
                return self._merge(connection, encoder, "interest", started, now)
            last_used = max(center.last_used, now) if is_read else center.last_used
            sql.add_view(connection, center.id, last_used, counted)
            return center.id

    def centers(self) -> list[Center]:
        """Return all centers that have not expired, the oldest first.

        Raises:
            InputError: If the store cannot be read.
        """
        now = self._now()
        with self._open("read") as (connection, encoder):
            return self._centers(connection, encoder, now)

    def export(self) -> dict[str, Any]:
        """Return the whole content of the file as values that JSON can represent.

        It includes expired centers, with the weight 0, as long as they are in the file.

        Raises:
            InputError: If the store cannot be read.
        """
        now = self._now()
        with self._open("read") as (connection, encoder):
            centers = self._stored_centers(connection, encoder, now)
            reactions = sql.read_reactions(connection)
        return {
            "schema_version": sql.SCHEMA_VERSION,
            "encoder": encoder._asdict(),
            "reactions": reactions,
            "centers": [{**asdict(center), "vector": center.vector.tolist()} for center in centers],
        }

    def forget(self, *ids: int) -> None:
        """Remove centers and overwrite their bytes in the file. On an error, remove none.

        Args:
            ids: The ids of the centers.

        Raises:
            InputError: If an id is unknown, or the store cannot be written.
        """
        now = self._now()
        with self._open("write") as (connection, encoder):
            reactions = sql.reactions_by_center(connection)  # of expired centers too, which `export` shows
            if unknown := [each for each in ids if each not in list(reactions)]:
                raise InputError(
                    f"{self._database} has no center {short_repr(unknown[0])}, expected the id of an existing center"
                )
            for each in reactions.keys() & set(ids):
                sql.delete_center(connection, each, reactions[each])
            self._delete_expired(connection, encoder, now)

    def forget_all(self) -> int:
        """Remove all centers, overwrite their bytes in the file, and return how many there were.

        Raises:
            InputError: If the store cannot be written.
        """
        with self._write(self._now()) as (connection, _):
            return sql.delete_all_centers(connection)

    def _use(self, kind: Kind, text: str, embedding: npt.ArrayLike) -> int:
        example, normalized, now = _example(text), normalized_embedding(embedding, self._encoder.dimension), self._now()
        with self._write(now) as (connection, encoder):
            center = nearest_center(self._centers(connection, encoder, now), kind, normalized, self._settings)
            if center is None:
                started = sql.insert_center(connection, kind, example, normalized, now)
                return self._merge(connection, encoder, kind, started, now)
            vector = shifted_vector(center, normalized, self._settings)
            sql.add_use(connection, center.id, max(center.last_used, now), vector)
            return center.id

    def _merge(
        self, connection: sqlite3.Connection, encoder: EncoderIdentity, kind: Kind, center_id: int, now: float
    ) -> int:
        """Merge centers of a kind until there are `max_centers`, and return the id under which one of them remains."""
        centers = [center for center in self._centers(connection, encoder, now) if center.kind == kind]
        while len(centers) > self._settings.max_centers:
            survivor, absorbed = cheapest_merge(centers)
            merged = merge_centers(survivor, absorbed, now, self._settings)
            sql.replace_two_centers(connection, merged, absorbed.id)
            centers = [merged if center is survivor else center for center in centers if center is not absorbed]
            center_id = merged.id if center_id == absorbed.id else center_id
        return center_id

    @contextmanager
    def _write(self, now: float) -> Iterator[tuple[sqlite3.Connection, EncoderIdentity]]:
        """Return a transaction that changes the file, after it has removed the expired centers."""
        with self._open("write") as (connection, encoder):
            self._delete_expired(connection, encoder, now)
            yield connection, encoder

    def _delete_expired(self, connection: sqlite3.Connection, encoder: EncoderIdentity, now: float) -> None:
        for center in self._stored_centers(connection, encoder, now):
            if is_expired(now - center.last_used, self._settings):
                sql.delete_center(connection, center.id, center.uses + center.views)

    @contextmanager
    def _open(self, access: Access) -> Iterator[tuple[sqlite3.Connection, EncoderIdentity]]:
        """Return a transaction on the file. It is checked each time, because another file may have replaced it."""
        with self._database.transaction(access) as connection:
            encoder = sql.read_encoder(connection, str(self._database))
            if self._expected is not None and not encoder.is_comparable(self._expected):
                raise InputError(
                    f"{self._database} belongs to the encoder {encoder}, expected {self._expected}; use that encoder, "
                    "or another path for a new store"
                )
            yield connection, encoder

    def _centers(self, connection: sqlite3.Connection, encoder: EncoderIdentity, now: float) -> list[Center]:
        """Return the centers that have not expired, the oldest first."""
        centers = self._stored_centers(connection, encoder, now)
        return [center for center in centers if not is_expired(now - center.last_used, self._settings)]

    def _stored_centers(self, connection: sqlite3.Connection, encoder: EncoderIdentity, now: float) -> list[Center]:
        """Return all centers in the file, the oldest first; raise InputError if a row has an invalid value."""
        rows = sql.read_centers(connection, str(self._database), encoder.dimension)
        return [self._center(row, vector, now) for row, vector in rows]

    def _center(self, row: tuple[Any, ...], vector: npt.NDArray[np.float32], now: float) -> Center:
        identifier, kind, example, uses, views, view_seconds, first_used, last_used = row
        weight = center_weight(uses, view_seconds, now - last_used, self._settings)
        return Center(identifier, kind, example, uses, views, view_seconds, first_used, last_used, weight, vector)

    def _now(self) -> float:
        now = self._clock()
        is_number = isinstance(now, int | float) and not isinstance(now, bool)
        if not is_number or not 0 <= now <= _MAX_TIME:  # also rejects NaN, and compares integers of any size
            raise InputError(
                f"the clock returned {short_repr(now)}, expected seconds since the epoch, from 0 (1970) to {_MAX_TIME} "
                "(9999)"
            )
        return float(now)


def _example(text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"the text is {type(text).__name__}, expected str")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("the text contains a lone surrogate, expected valid Unicode; remove it") from None
    return " ".join(text.split())[:_EXAMPLE_CHARACTERS]
