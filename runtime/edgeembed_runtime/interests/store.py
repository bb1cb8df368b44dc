"""The store of a user's centers of interest, in one SQLite file."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._validation import validate_number
from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.interests import sql
from edgeembed_runtime.interests.centers import (
    DEFAULT_NEAR_COSINE,
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


class _Opened(NamedTuple):
    """A transaction on the file, and what the file says of the encoder and the settings."""

    connection: sqlite3.Connection
    encoder: EncoderIdentity
    settings: InterestSettings


class InterestStore:
    """Centers of interest in an SQLite file that threads and processes may share.

    The store takes embeddings and loads no model. `SemanticRanker` documents what each reaction does. A reaction is
    one transaction: it is on the disk when the call returns, and a process that is killed earlier leaves the store
    unchanged. The file contains the vectors of the centers, counts, times, and the first 120 characters of the text
    that started each center. Only its owner may read it. Each transaction first checks that the file has the tables of
    a store and nothing else, and that the uses and views of the centers add up to the number of reactions, which is
    counted separately.

    The file also contains the settings, so that everybody who uses it has the same. Only `change_settings` changes
    them.

    A center that was not used for `InterestSettings.horizon_days` expires: `centers` no longer lists it, and the next
    reaction removes it from the file. So a clock that is wrong by more than this into the future removes everything at
    the next reaction.

    Args:
        path: The file, or ":memory:".
        encoder: The encoder that the store belongs to; an absent store is created. None opens an existing store of
            any encoder.
        settings: The constants, which must be those of an existing file. None takes those of the file, and the
            defaults for a new one.
        near_cosine: The `near_cosine` of a new file whose settings state none.
        clock: Returns the time in seconds since the epoch, from 0 (1970) to the end of the year 9999. If the clock
            goes backwards, no last use is set back.

    Raises:
        InputError: If the file is not a store, is damaged, has another schema version or other settings, or belongs to
            an encoder of another embedding space.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        encoder: EncoderIdentity | None = None,
        *,
        settings: InterestSettings | None = None,
        near_cosine: float = DEFAULT_NEAR_COSINE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if settings is not None:
            _validate_settings(settings)
        if not callable(clock):
            raise InputError(
                f"the clock is {type(clock).__name__}, expected a function that returns seconds since the epoch"
            )
        self._clock = clock
        self._expected = encoder
        self._database = Database(path, create=encoder is not None)
        with self._database.transaction("read") as connection:
            is_new = sql.is_empty(connection)
        if is_new and encoder is not None:
            new = _with_near_cosine(settings or InterestSettings(), near_cosine)
            with self._database.transaction("write") as connection:
                sql.create_tables(connection, encoder, new)
        with self._open("read") as opened:
            self._encoder = opened.encoder
        if settings is not None:
            self._check_settings(settings, opened.settings)

    @property
    def encoder(self) -> EncoderIdentity:
        """The encoder that the store belongs to."""
        return self._encoder

    @property
    def settings(self) -> InterestSettings:
        """The settings in the file.

        Raises:
            InputError: If the store cannot be read.
        """
        with self._open("read") as opened:
            return opened.settings

    def change_settings(self, settings: InterestSettings) -> None:
        """Replace the settings in the file, for everybody who uses it. Centers follow at the next reaction.

        Args:
            settings: The new settings. A `near_cosine` of None keeps that of the file.

        Raises:
            InputError: If they are not InterestSettings, or the store cannot be written.
        """
        _validate_settings(settings)
        with self._open("write") as opened:
            sql.write_settings(opened.connection, _with_near_cosine(settings, opened.settings.near_cosine))

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
        example, normalized, now = _example(text), normalized_embedding(embedding, self._encoder.dimension), self._now()
        with self._open("write") as opened:
            connection, settings = opened.connection, opened.settings
            counted = min(float(seconds), settings.max_view_seconds)
            is_read = seconds >= settings.min_read_seconds
            self._delete_expired(opened, now)
            center = nearest_center(self._centers(opened, now), "interest", normalized, settings)
            if center is None and not is_read:
                return None
            if center is None:
                started = sql.insert_center(connection, "interest", example, normalized, now, view_seconds=counted)
                return self._merge(opened, "interest", started, now)
            last_used = max(center.last_used, now) if is_read else center.last_used
            sql.add_view(connection, center.id, last_used, counted)
            return center.id

    def centers(self) -> list[Center]:
        """Return all centers that have not expired, the oldest first.

        Raises:
            InputError: If the store cannot be read.
        """
        now = self._now()
        with self._open("read") as opened:
            return self._centers(opened, now)

    def export(self) -> dict[str, Any]:
        """Return the whole content of the file as values that JSON can represent.

        It includes expired centers, with the weight 0, as long as they are in the file.

        Raises:
            InputError: If the store cannot be read.
        """
        now = self._now()
        with self._open("read") as opened:
            centers = self._stored_centers(opened, now)
            reactions = sql.read_reactions(opened.connection)
        return {
            "schema_version": sql.SCHEMA_VERSION,
            "encoder": opened.encoder._asdict(),
            "settings": asdict(opened.settings),
            "reactions": reactions,
            "centers": [{**asdict(center), "vector": center.vector.tolist()} for center in centers],
        }

    def forget(self, *ids: int) -> None:
        """Remove centers, and nothing else, and overwrite their bytes in the file. On an error, remove none.

        Args:
            ids: The ids of the centers.

        Raises:
            InputError: If an id is unknown, or the store cannot be written.
        """
        with self._open("write") as opened:
            connection = opened.connection
            reactions = sql.reactions_by_center(connection)  # of expired centers too, which `export` shows
            if unknown := [each for each in ids if each not in list(reactions)]:
                raise InputError(
                    f"{self._database} has no center {short_repr(unknown[0])}, expected the id of an existing center"
                )
            for each in reactions.keys() & set(ids):
                sql.delete_center(connection, each, reactions[each])

    def forget_all(self) -> int:
        """Remove all centers, overwrite their bytes in the file, and return how many `export` showed.

        Raises:
            InputError: If the store cannot be written.
        """
        with self._open("write") as opened:
            return sql.delete_all_centers(opened.connection)

    def _use(self, kind: Kind, text: str, embedding: npt.ArrayLike) -> int:
        example, normalized, now = _example(text), normalized_embedding(embedding, self._encoder.dimension), self._now()
        with self._open("write") as opened:
            connection, settings = opened.connection, opened.settings
            self._delete_expired(opened, now)
            center = nearest_center(self._centers(opened, now), kind, normalized, settings)
            if center is None:
                started = sql.insert_center(connection, kind, example, normalized, now)
                return self._merge(opened, kind, started, now)
            vector = shifted_vector(center, normalized, settings)
            sql.add_use(connection, center.id, max(center.last_used, now), vector)
            return center.id

    def _merge(self, opened: _Opened, kind: Kind, center_id: int, now: float) -> int:
        """Merge centers of a kind until there are `max_centers`, and return the id under which one of them remains."""
        centers = [center for center in self._centers(opened, now) if center.kind == kind]
        while len(centers) > opened.settings.max_centers:
            survivor, absorbed = cheapest_merge(centers)
            merged = merge_centers(survivor, absorbed, now, opened.settings)
            sql.replace_two_centers(opened.connection, merged, absorbed.id)
            centers = [merged if center is survivor else center for center in centers if center is not absorbed]
            center_id = merged.id if center_id == absorbed.id else center_id
        return center_id

    def _delete_expired(self, opened: _Opened, now: float) -> None:
        for center in self._stored_centers(opened, now):
            if is_expired(now - center.last_used, opened.settings):
                sql.delete_center(opened.connection, center.id, center.uses + center.views)

    @contextmanager
    def _open(self, access: Access) -> Iterator[_Opened]:
        """Open a transaction on the file. It is checked each time, because another file may have replaced it."""
        name = str(self._database)
        with self._database.transaction(access) as connection:
            encoder = sql.read_encoder(connection, name)
            if self._expected is not None and not encoder.is_comparable(self._expected):
                raise InputError(
                    f"{name} belongs to the encoder {encoder}, expected {self._expected}; use that encoder, or another "
                    "path for a new store"
                )
            yield _Opened(connection, encoder, sql.read_settings(connection, name))

    def _check_settings(self, given: InterestSettings, stored: InterestSettings) -> None:
        """Raise InputError unless the given settings are those of the file; a `near_cosine` of None is."""
        expected, actual = asdict(_with_near_cosine(given, stored.near_cosine)), asdict(stored)
        if names := [name for name, value in actual.items() if expected[name] != value]:
            here, there = ([f"{name}={short_repr(of[name])}" for name in names] for of in (actual, expected))
            raise InputError(
                f"{self._database} has the settings {', '.join(here)}, but {', '.join(there)} "
                f"{'was' if len(names) == 1 else 'were'} given; leave the settings out to use those of the file, or "
                "change them there with change_settings"
            )

    def _centers(self, opened: _Opened, now: float) -> list[Center]:
        """Return the centers that have not expired, the oldest first."""
        centers = self._stored_centers(opened, now)
        return [center for center in centers if not is_expired(now - center.last_used, opened.settings)]

    def _stored_centers(self, opened: _Opened, now: float) -> list[Center]:
        """Return all centers in the file, the oldest first; raise InputError if a row has an invalid value."""
        rows = sql.read_centers(opened.connection, str(self._database), opened.encoder.dimension)
        return [_center(row, vector, now, opened.settings) for row, vector in rows]

    def _now(self) -> float:
        now = self._clock()
        is_number = isinstance(now, int | float) and not isinstance(now, bool)
        if not is_number or not 0 <= now <= _MAX_TIME:  # also rejects NaN, and compares integers of any size
            raise InputError(
                f"the clock returned {short_repr(now)}, expected seconds since the epoch, from 0 (1970) to {_MAX_TIME} "
                "(9999)"
            )
        return float(now)


def _center(row: tuple[Any, ...], vector: npt.NDArray[np.float32], now: float, settings: InterestSettings) -> Center:
    identifier, kind, example, uses, views, view_seconds, first_used, last_used = row
    weight = center_weight(uses, view_seconds, now - last_used, settings)
    return Center(identifier, kind, example, uses, views, view_seconds, first_used, last_used, weight, vector)


def _validate_settings(settings: object) -> None:
    if not isinstance(settings, InterestSettings):
        raise InputError(f"the settings are {type(settings).__name__}, expected InterestSettings")


def _with_near_cosine(settings: InterestSettings, near_cosine: float | None) -> InterestSettings:
    """Return settings with this `near_cosine`, unless they state one."""
    return replace(settings, near_cosine=near_cosine) if settings.near_cosine is None else settings


def _example(text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"the text is {type(text).__name__}, expected str")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("the text contains a lone surrogate, expected valid Unicode; remove it") from None
    return " ".join(text.split())[:_EXAMPLE_CHARACTERS]
