"""The interest store: reactions, durability, damaged files, concurrency and clocks."""

import contextlib
import copy
import json
import os
import pickle
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import InputError, InterestSettings
from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.interests.database import Database
from edgeembed_runtime.interests.store import InterestStore

_DIMENSION = 8
_ENCODER = EncoderIdentity("tiny", "0123456789abcdef", _DIMENSION)
_DAY = 86_400.0
_AXES = np.eye(_DIMENSION, dtype=np.float32)

_needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

# For every line "path reactions processes" on stdin, fork processes that like, dislike and view random axes and print
# each reaction once its call has returned. Print the process ids first, and "end" with the exit codes last.
_WORKER_CODE = """
import os, random, sys
import numpy as np
from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.interests.store import InterestStore

def react(path, count):
    store = InterestStore(path, EncoderIdentity("tiny", "0123456789abcdef", 8))
    chance = random.Random(os.getpid())
    for _ in range(count):
        axis, kind = chance.randrange(8), chance.choice(["like", "dislike", "view"])
        vector = np.eye(8)[axis]
        if kind == "view":
            store.view(f"axis {axis}", vector, 30)
        else:
            getattr(store, kind)(f"axis {axis}", vector)
        os.write(1, f"{'disinterest' if kind == 'dislike' else 'interest'}-{axis}\\n".encode())

for line in sys.stdin:
    path, count, processes = line.rsplit(" ", 2)
    children = []
    for _ in range(int(processes)):
        child = os.fork()
        if child == 0:
            react(path, int(count))
            os._exit(0)
        children.append(child)
    os.write(1, f"started {' '.join(map(str, children))}\\n".encode())
    codes = [os.waitpid(child, 0)[1] for child in children]
    os.write(1, f"end {codes}\\n".encode())
"""


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "interests.db"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(path: Path, clock: Clock) -> InterestStore:
    return InterestStore(path, _ENCODER, clock=clock)


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _WORKER_CODE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        yield process
        _pipe(process.stdin).close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _with_cosine(first: int, second: int, cosine: float) -> npt.NDArray[np.float32]:
    vector: npt.NDArray[np.float32] = cosine * _AXES[first] + np.sqrt(1 - cosine**2) * _AXES[second]
    return vector


def _sql(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def _assert_consistent(path: Path) -> None:
    """Assert that the separately counted reactions equal the sum over the centers, and that the file is intact."""
    export = InterestStore(path).export()
    assert export["reactions"] == sum(center["uses"] + center["views"] for center in export["centers"])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_like_starts_a_center_and_the_next_near_like_moves_it(store: InterestStore, clock: Clock) -> None:
    assert store.like("  Bread,\n baked at home ", _AXES[0]) == 1
    clock.now += 60
    assert store.like("Rye bread", _with_cosine(0, 1, 0.5)) == 1
    (center,) = store.centers()
    assert (center.kind, center.example, center.uses, center.views) == ("interest", "Bread, baked at home", 2, 0)
    assert (center.first_used, center.last_used) == (clock.now - 60, clock.now)
    assert center.weight == 2
    expected = 0.9 * _AXES[0] + 0.1 * _with_cosine(0, 1, 0.5)
    assert center.vector == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


def test_like_below_the_threshold_starts_another_center(store: InterestStore) -> None:
    assert [store.like("a", _AXES[0]), store.like("b", _AXES[1]), store.like("c", _with_cosine(0, 2, 0.39))] == [
        1,
        2,
        3,
    ]


def test_dislikes_have_separate_centers(store: InterestStore) -> None:
    assert [store.like("a", _AXES[0]), store.dislike("a", _AXES[0]), store.dislike("b", _AXES[0])] == [1, 2, 2]
    assert [(center.kind, center.uses) for center in store.centers()] == [("interest", 1), ("disinterest", 2)]


def test_view_adds_seconds_to_a_near_interest_without_moving_it(store: InterestStore, clock: Clock) -> None:
    store.like("a", _AXES[0])
    clock.now += _DAY
    assert store.view("b", _with_cosine(0, 1, 0.5), 45) == 1
    (center,) = store.centers()
    assert (center.uses, center.views, center.view_seconds, center.last_used) == (1, 1, 45, clock.now)
    assert center.weight == 1.75
    assert center.vector.tolist() == _AXES[0].tolist()


def test_short_view_adds_seconds_but_does_not_set_last_used(store: InterestStore, clock: Clock) -> None:
    store.like("a", _AXES[0])
    clock.now += 15 * _DAY
    assert store.view("b", _AXES[0], 19.9) == 1
    (center,) = store.centers()
    assert (center.views, center.view_seconds, center.last_used) == (1, 19.9, clock.now - 15 * _DAY)


def test_short_view_of_something_new_changes_nothing(store: InterestStore) -> None:
    assert store.view("a", _AXES[0], 1) is None
    store.dislike("b", _AXES[0])
    assert store.view("b", _AXES[0], 1) is None
    assert (len(store.centers()), store.export()["reactions"]) == (1, 1)


def test_long_view_of_something_new_starts_an_interest_with_zero_uses(store: InterestStore) -> None:
    assert store.view("a", _AXES[0], 30) == 1
    (center,) = store.centers()
    assert (center.kind, center.uses, center.views, center.weight) == ("interest", 0, 1, 0.5)


def test_view_adds_at_most_max_view_seconds(store: InterestStore) -> None:
    store.view("a", _AXES[0], 8 * 3600)
    assert store.centers()[0].view_seconds == 300


@pytest.mark.parametrize(
    "seconds", [-1, float("nan"), float("inf"), "9", None, True, pytest.param(10**5000, id="no-repr")]
)
def test_invalid_seconds_are_rejected(store: InterestStore, seconds: Any) -> None:
    with pytest.raises(InputError, match=r"seconds is .*, expected a finite number of at least 0"):
        store.view("a", _AXES[0], seconds)


def test_settings_override_the_defaults(path: Path, clock: Clock) -> None:
    settings = InterestSettings(near_cosine=0.9, horizon_days=2, seconds_per_use=10, min_read_seconds=5)
    store = InterestStore(path, _ENCODER, settings=settings, clock=clock)
    assert [store.like("a", _AXES[0]), store.like("b", _with_cosine(0, 1, 0.8)), store.view("c", _AXES[2], 5)] == [
        1,
        2,
        3,
    ]
    clock.now += _DAY
    assert [center.weight for center in store.centers()] == [0.5, 0.5, 0.25]


def test_weight_does_not_grow_when_the_clock_goes_back(store: InterestStore, clock: Clock) -> None:
    store.like("a", _AXES[0])
    clock.now -= 100 * _DAY
    assert store.centers()[0].weight == 1


@pytest.mark.parametrize("reaction", ["like", "dislike", "view"])
def test_last_used_does_not_go_back_when_the_clock_does(store: InterestStore, clock: Clock, reaction: str) -> None:
    more = (60,) if reaction == "view" else ()
    right = clock.now
    getattr(store, reaction)("a", _AXES[0], *more)
    clock.now = 0  # the device lost its clock
    getattr(store, reaction)("a", _AXES[0], *more)
    clock.now = right
    (center,) = store.centers()
    assert (center.first_used, center.last_used) == (right, right)
    assert center.weight == 2
    clock.now += 15 * _DAY
    assert store.centers()[0].weight == pytest.approx(1)


@pytest.mark.parametrize(
    "now",
    [
        *(float("nan"), float("inf"), -float("inf"), "today", None, True),
        *(-1, -0.5, 10.0**300, 253_402_300_800, 10**400, -(10**400)),
        pytest.param(10**5000, id="no-repr"),
        np.zeros((30, 30)),
    ],
)
def test_invalid_clock_value_is_rejected_in_one_line(store: InterestStore, clock: Clock, now: Any) -> None:
    clock.now = now
    uses = (
        lambda: store.like("a", _AXES[0]),
        lambda: store.dislike("a", _AXES[0]),
        lambda: store.view("a", _AXES[0], 60),
        store.centers,
        store.export,
    )
    for use in uses:
        with pytest.raises(InputError, match=r"the clock returned .*expected seconds since the epoch") as caught:
            use()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 200
    clock.now = 1_000_000_000.0
    assert store.export()["reactions"] == 0


@pytest.mark.parametrize(
    ("text", "vector", "message"),
    [
        (None, _AXES[0], "the text is NoneType"),
        ("a\udcff", _AXES[0], "surrogate"),
        ("a", [1.0, 2.0], "expected 8 finite numbers"),
        ("a", np.full(8, np.nan), "contains NaN or infinity"),
        ("a", np.zeros(8), "all zeros"),
    ],
)
def test_invalid_text_or_embedding_is_rejected_and_changes_nothing(
    store: InterestStore, text: Any, vector: Any, message: str
) -> None:
    for react in (store.like, store.dislike, lambda text, vector: store.view(text, vector, 60)):
        with pytest.raises(InputError, match=message):
            react(text, vector)
    assert store.export()["reactions"] == 0


def test_reopened_store_has_the_same_content(store: InterestStore, path: Path, clock: Clock) -> None:
    store.like("a", _AXES[0])
    store.view("b", _AXES[1], 60)
    assert InterestStore(path, _ENCODER, clock=clock).export() == store.export()
    assert InterestStore(str(path), clock=clock).encoder == _ENCODER


def test_example_is_the_beginning_of_the_text(store: InterestStore) -> None:
    store.like("word " * 1000, _AXES[0])
    store.like("", _AXES[1])
    assert [center.example for center in store.centers()] == [("word " * 24), ""]


def test_export_is_json_with_the_whole_content(store: InterestStore, clock: Clock) -> None:
    store.dislike("a", _AXES[3])
    assert json.loads(json.dumps(store.export())) == {
        "schema_version": 4,
        "encoder": {"name": "tiny", "fingerprint": "0123456789abcdef", "dimension": 8, "space": None},
        "settings": {
            "near_cosine": 0.4,
            "max_centers": 12,
            "shift": 0.1,
            "horizon_days": 30.0,
            "seconds_per_use": 60.0,
            "min_read_seconds": 20.0,
            "max_view_seconds": 300.0,
            "query_weight": 0.8,
        },
        "reactions": 1,
        "centers": [
            {
                "id": 1,
                "kind": "disinterest",
                "example": "a",
                "uses": 1,
                "views": 0,
                "view_seconds": 0.0,
                "first_used": clock.now,
                "last_used": clock.now,
                "weight": 1.0,
                "vector": _AXES[3].tolist(),
            }
        ],
    }


def test_id_of_a_forgotten_center_is_not_reused(store: InterestStore, path: Path) -> None:
    for axis in range(3):
        store.like(f"axis {axis}", _AXES[axis])
    store.forget(3, 1, 1)
    assert [center.id for center in store.centers()] == [2]
    assert store.like("new", _AXES[0]) == 4
    _assert_consistent(path)


def test_forget_with_an_unknown_id_names_it_and_removes_nothing(store: InterestStore) -> None:
    store.like("a", _AXES[0])
    for unknown in (2, -1, 10**30, "1"):
        with pytest.raises(InputError, match=f"has no center {unknown!r}"):
            store.forget(1, unknown)  # type: ignore[arg-type]
    assert len(store.centers()) == 1


def test_forgotten_data_is_overwritten_in_the_file(path: Path) -> None:
    store = InterestStore(path, _ENCODER, settings=InterestSettings(near_cosine=1, max_centers=99))
    store.like("keep this one", _AXES[0])
    vectors = np.random.default_rng(0).standard_normal((30, _DIMENSION))
    for number, vector in enumerate(vectors):  # on several pages, so that rows move between them
        store.like(f"a secret of mine {number} ".ljust(120, "x"), vector)
    stored = [center.vector.tobytes() for center in store.centers()[1:]]
    assert path.read_bytes().count(b"a secret of mine") == 30
    assert all(vector in path.read_bytes() for vector in stored)
    store.forget(*range(3, 32, 2))
    store.forget(*range(2, 32, 2))
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert b"a secret of mine" not in path.read_bytes()
    assert not any(vector in path.read_bytes() for vector in stored)
    assert b"keep this one" in path.read_bytes()
    assert store.forget_all() == 1
    assert b"keep this one" not in path.read_bytes()
    assert (store.centers(), store.export()["reactions"]) == ([], 0)


def test_old_vector_of_a_moved_center_is_overwritten_in_the_file(store: InterestStore, path: Path) -> None:
    before = np.random.default_rng(0).standard_normal(_DIMENSION)
    store.like("a", before)
    stored = store.centers()[0].vector.tobytes()
    assert stored in path.read_bytes()
    store.like("b", before + _AXES[0])
    assert stored not in path.read_bytes()


def test_text_of_an_absorbed_center_is_overwritten_in_the_file(path: Path, clock: Clock) -> None:
    store = InterestStore(path, _ENCODER, settings=InterestSettings(max_centers=1), clock=clock)
    store.like("first", _AXES[0])
    assert store.like("a secret of mine", _AXES[1]) == 1
    assert b"a secret of mine" not in path.read_bytes()


def test_each_kind_keeps_at_most_max_centers(path: Path, clock: Clock) -> None:
    store = InterestStore(path, _ENCODER, settings=InterestSettings(max_centers=3, near_cosine=0.9), clock=clock)
    random_vectors = np.random.default_rng(0).standard_normal((60, _DIMENSION))
    for number, vector in enumerate(random_vectors):
        react = (store.like, store.dislike, lambda text, vector: store.view(text, vector, 60))[number % 3]
        center_id = react(f"text {number}", vector)
        centers = store.centers()
        assert center_id in [center.id for center in centers]
        assert max(Counter(center.kind for center in centers).values()) <= 3
    assert Counter(center.kind for center in centers) == {"interest": 3, "disinterest": 3}
    assert sum(center.uses + center.views for center in centers) == 60
    assert sum(center.view_seconds for center in centers) == 20 * 60
    _assert_consistent(path)


def test_like_returns_the_id_of_the_center_that_absorbed_its_own(path: Path, clock: Clock) -> None:
    settings = InterestSettings(max_centers=2, near_cosine=0.9)
    store = InterestStore(path, _ENCODER, settings=settings, clock=clock)
    assert [store.like("a", _AXES[0]), store.like("a", _AXES[0]), store.like("b", _AXES[1])] == [1, 1, 2]
    assert store.like("c", _with_cosine(0, 2, 0.8)) == 1
    assert store.view("d", _with_cosine(1, 3, 0.8), 60) == 2
    assert [(center.example, center.uses, center.views) for center in store.centers()] == [("a", 3, 0), ("b", 1, 1)]
    store.forget(2)
    assert store.like("e", _AXES[4]) == 5  # 3 and 4 were used and absorbed


def test_decayed_center_keeps_its_id_but_not_its_example(path: Path, clock: Clock) -> None:
    store = InterestStore(path, _ENCODER, settings=InterestSettings(max_centers=2), clock=clock)
    store.like("old", _AXES[0])
    clock.now += 29 * _DAY
    assert [store.like("new", _AXES[1]), store.view("new", _AXES[1], 60)] == [2, 2]
    assert store.like("more", _AXES[2]) == 1
    assert [(center.id, center.example, center.uses) for center in store.centers()] == [(1, "more", 2), (2, "new", 1)]
    assert store.centers()[0].first_used == clock.now - 29 * _DAY


def test_lower_maximum_merges_the_centers_of_an_existing_store(path: Path) -> None:
    store = InterestStore(path, _ENCODER)
    for axis in range(6):
        store.like(f"axis {axis}", _AXES[axis])
    InterestStore(path).change_settings(InterestSettings(max_centers=2))
    assert len(store.centers()) == 6
    store.like("axis 7", _AXES[7])
    assert sorted(center.uses for center in store.centers()) == [3, 4]
    _assert_consistent(path)


def test_interrupted_merge_leaves_the_store_unchanged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = InterestStore(path, _ENCODER, settings=InterestSettings(max_centers=1))
    store.like("a", _AXES[0])
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("edgeembed_runtime.interests.sql._delete_row", fail)
    with pytest.raises(KeyboardInterrupt):
        store.like("b", _AXES[1])
    assert path.read_bytes() == before


def test_expired_center_is_no_longer_listed_and_leaves_the_file_with_the_next_change(path: Path, clock: Clock) -> None:
    store = InterestStore(path, _ENCODER, clock=clock)
    store.like("a secret of mine", _AXES[0])
    clock.now += 15 * _DAY
    store.dislike("b", _AXES[1])
    clock.now += 15 * _DAY
    assert [center.id for center in store.centers()] == [2]
    assert [center["weight"] for center in store.export()["centers"]] == [0, 0.5]  # still in the file
    assert store.like("c", _AXES[0]) == 3
    assert [center.example for center in store.centers()] == ["b", "c"]
    assert store.export()["reactions"] == 2
    assert b"a secret of mine" not in path.read_bytes()
    _assert_consistent(path)


@pytest.mark.parametrize("reaction", ["like", "dislike", "view", "glance"])
def test_every_reaction_removes_expired_centers(path: Path, clock: Clock, reaction: str) -> None:
    store = InterestStore(path, _ENCODER, clock=clock)
    store.like("a", _AXES[0])
    clock.now += 30 * _DAY
    if reaction in ("view", "glance"):
        store.view("b", _AXES[1], 60 if reaction == "view" else 1)
    else:
        getattr(store, reaction)("b", _AXES[1])
    assert 1 not in [center["id"] for center in store.export()["centers"]]
    _assert_consistent(path)


def test_forget_removes_what_it_was_told_and_nothing_else(path: Path, clock: Clock) -> None:
    store = InterestStore(path, _ENCODER, clock=clock)
    for axis in range(3):
        store.like(f"axis {axis}", _AXES[axis])
    clock.now += 30 * _DAY
    store.forget(1)
    assert [center["id"] for center in store.export()["centers"]] == [2, 3]  # expired, but not forgotten
    clock.now -= 20 * _DAY
    assert [center.id for center in store.centers()] == [2, 3]
    clock.now += 20 * _DAY
    assert store.forget_all() == 2
    assert store.export()["centers"] == []
    with pytest.raises(InputError, match="has no center 1"):
        store.forget(1)
    _assert_consistent(path)


_SETTINGS = InterestSettings(
    near_cosine=0.9,
    max_centers=100,
    shift=0.25,
    horizon_days=365,
    seconds_per_use=30,
    min_read_seconds=5,
    max_view_seconds=90,
    query_weight=0.5,
)


def test_settings_are_those_of_the_file_for_everybody_who_opens_it(path: Path, clock: Clock) -> None:
    first = InterestStore(path, _ENCODER, settings=_SETTINGS, clock=clock)
    for axis in range(_DIMENSION):
        first.like(f"old {axis}", _AXES[axis])
    clock.now += 60 * _DAY
    for encoder in (None, _ENCODER):
        other = InterestStore(path, encoder, clock=clock)
        assert other.settings == _SETTINGS
        assert [center.weight for center in other.centers()] == [center.weight for center in first.centers()]
    for number in range(10):  # 18 interests, beyond the default maximum and horizon
        other.like(f"new {number}", _with_cosine(number % 8, (number + 1 + number // 8) % 8, 0.7))
    other.forget(18)
    assert [center.id for center in first.centers()] == list(range(1, 18))


@pytest.mark.parametrize("name", [field.name for field in fields(InterestSettings)])
def test_opening_with_another_setting_is_an_error_that_names_it(path: Path, name: str) -> None:
    InterestStore(path, _ENCODER, settings=_SETTINGS).like("a", _AXES[0])
    before = path.read_bytes()
    other = replace(_SETTINGS, **{name: 1})
    with pytest.raises(
        InputError, match=rf"has the settings {name}=[\d.]+, but {name}=1(\.0)? was given; leave .* out"
    ) as caught:
        InterestStore(path, _ENCODER, settings=other)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    store = InterestStore(path, _ENCODER, settings=_SETTINGS)
    store.change_settings(other)
    assert store.settings == other
    assert InterestStore(path, _ENCODER, settings=other).settings == other


def test_near_cosine_of_none_is_that_of_the_file(path: Path) -> None:
    store = InterestStore(path, _ENCODER, settings=InterestSettings(shift=0.5), near_cosine=0.3)
    assert store.settings == InterestSettings(shift=0.5, near_cosine=0.3)
    store = InterestStore(path, _ENCODER, settings=InterestSettings(shift=0.5), near_cosine=0.7)
    assert store.settings.near_cosine == 0.3
    store.change_settings(InterestSettings(shift=0.2))
    assert store.settings == InterestSettings(shift=0.2, near_cosine=0.3)


def test_settings_of_numpy_and_large_numbers_are_stored(path: Path) -> None:
    settings = InterestSettings(shift=np.float32(0.3), max_centers=np.int16(7), horizon_days=10**300)  # type: ignore[arg-type]
    for _ in range(2):
        store = InterestStore(path, _ENCODER, settings=settings)
        assert (store.settings.shift, store.settings.max_centers) == (float(np.float32(0.3)), 7)
        assert store.settings.horizon_days == 1e300


@pytest.mark.parametrize("settings", [None, 0.4, {"shift": 0.5}])
def test_settings_of_another_type_change_nothing(store: InterestStore, settings: Any) -> None:
    with pytest.raises(InputError, match="expected InterestSettings"):
        store.change_settings(settings)
    assert store.settings == InterestSettings(near_cosine=0.4)


def test_center_of_a_view_of_zero_seconds_is_kept_until_it_expires(path: Path, clock: Clock) -> None:
    settings = InterestSettings(min_read_seconds=0, max_centers=2)
    store = InterestStore(path, _ENCODER, settings=settings, clock=clock)
    for axis in range(4):
        store.view(f"axis {axis}", _AXES[axis], 0)
    assert [center.weight for center in store.centers()] == [0, 0]
    assert sum(center.views for center in store.centers()) == 4


def test_in_memory_store_can_be_pickled_and_copied(clock: Clock) -> None:
    store = InterestStore(":memory:", _ENCODER, clock=clock)
    for axis in range(3):
        store.like(f"it's\0axis\n{axis}", _AXES[axis] + 0.1)
    store.forget(3)
    for again in (pickle.loads(pickle.dumps(store)), copy.deepcopy(store)):  # noqa: S301 - our own
        assert again.export() == store.export()
        assert again.like("new", -_AXES[0]) == 4
    assert len(store.centers()) == 2


def test_store_in_a_file_can_be_pickled(store: InterestStore) -> None:
    store.like("a", _AXES[0])
    again = pickle.loads(pickle.dumps(store))  # noqa: S301 - our own
    assert again.like("b", _AXES[0]) == 1
    assert store.centers()[0].uses == 2


def test_in_memory_store_creates_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = InterestStore(":memory:", _ENCODER)
    assert [store.like("a", _AXES[0]), store.dislike("b", _AXES[0])] == [1, 2]
    with pytest.raises(InputError, match="no center 3"):
        store.forget(3)
    assert store.forget_all() == 2
    assert list(tmp_path.iterdir()) == []


def test_only_the_owner_can_read_a_new_store(store: InterestStore, path: Path) -> None:
    store.like("a", _AXES[0])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_store_stays_the_same_file_after_chdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = InterestStore("odd name?#%.db", _ENCODER)
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.like("a", _AXES[0])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["elsewhere", "odd name?#%.db"]


def test_store_of_another_encoder_is_rejected_with_both_names(store: InterestStore, path: Path) -> None:
    other = EncoderIdentity("other", "fedcba9876543210", _DIMENSION)
    expected = r"belongs to the encoder 'tiny' \(0123456789ab\), expected 'other' \(fedcba987654\)"
    with pytest.raises(InputError, match=expected):
        InterestStore(path, other)
    assert store.centers() == []


def test_encoders_of_one_space_share_a_store(tmp_path: Path) -> None:
    path, space = tmp_path / "shared.db", "bert-8-0123456789abcdef"
    first, second, third = (EncoderIdentity("e", 16 * digit, _DIMENSION, space) for digit in "abc")
    store = InterestStore(path, first)
    store.like("a", _AXES[0])
    update = InterestStore(path, second)
    update.like("a", _AXES[0])
    assert [center.uses for center in store.centers()] == [2]
    assert update.encoder == first
    for other in (third._replace(space=None), third._replace(space="bert-8-fedcba9876543210")):
        with pytest.raises(InputError, match=rf"belongs to the encoder 'e' \(aaaaaaaaaaaa, space {space}\)"):
            InterestStore(path, other)


def test_replaced_or_removed_file_is_noticed(store: InterestStore, path: Path) -> None:
    path.unlink()
    with pytest.raises(InputError, match="cannot be opened"):
        store.like("a", _AXES[0])
    assert not path.exists()
    InterestStore(path, EncoderIdentity("other", "fedcba9876543210", _DIMENSION))
    with pytest.raises(InputError, match="belongs to the encoder 'other'"):
        store.like("a", _AXES[0])


def test_file_that_is_not_a_store_is_rejected_and_unchanged(path: Path) -> None:
    path.write_text("some text of mine, long enough to be read as a header of SQLite", encoding="utf-8")
    with pytest.raises(InputError, match="is not an SQLite file"):
        InterestStore(path, _ENCODER)
    assert path.read_text(encoding="utf-8").startswith("some text of mine")
    path.unlink()
    _sql(path, "CREATE TABLE notes (note TEXT)")
    before = path.read_bytes()
    for encoder in (None, _ENCODER):
        with pytest.raises(InputError, match="is an SQLite file but not a store of interests"):
            InterestStore(path, encoder)
    assert path.read_bytes() == before


def test_store_of_a_newer_schema_version_is_rejected(store: InterestStore, path: Path) -> None:
    _sql(path, "PRAGMA user_version = 5")
    with pytest.raises(InputError, match="has schema version 5, expected 4; upgrade"):
        InterestStore(path, _ENCODER)


def test_store_of_an_older_schema_version_is_rejected(store: InterestStore, path: Path) -> None:
    _sql(path, "PRAGMA user_version = 1")
    with pytest.raises(InputError, match="has schema version 1, expected 4: an older release wrote it; remove it"):
        InterestStore(path, _ENCODER)


def test_absent_store_is_not_created_without_an_encoder(path: Path) -> None:
    with pytest.raises(InputError, match="is not a file, expected an existing store"):
        InterestStore(path)
    assert not path.exists()


@pytest.mark.parametrize("name", ["", ".", "absent/interests.db", "nul\0.db"])
def test_invalid_path_is_rejected(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"choose a(nother)? path") as caught:
        InterestStore(name, _ENCODER)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE centers SET vector = x'00'",
        "UPDATE centers SET vector = zeroblob(32)",
        "UPDATE centers SET vector = x'" + "0000c07f" * 8 + "'",
        "UPDATE centers SET vector = 'text'",
        "UPDATE centers SET kind = 'boredom'",
        "UPDATE centers SET example = x'ff'",
        "UPDATE centers SET example = CAST(x'ff' AS TEXT)",
        "UPDATE centers SET uses = -1",
        "UPDATE centers SET uses = 'many'",
        "UPDATE centers SET view_seconds = 9e999",
        "UPDATE centers SET last_used = -9e999",
        "UPDATE store SET dimension = 'eight'",
        "UPDATE store SET dimension = 7",
        "UPDATE store SET dimension = -1",
        "DELETE FROM store",
        "DROP TABLE store",
        "DROP TABLE centers",
        "UPDATE store SET shift = 2",
        "UPDATE store SET shift = 'much'",
        "UPDATE store SET horizon_days = 9e999",
        "UPDATE store SET max_centers = 0",
        "UPDATE store SET max_centers = 2.5",
        "UPDATE store SET reactions = 5",
        "UPDATE store SET reactions = 'one'",
        "UPDATE centers SET views = 9223372036854775807",
        "DELETE FROM centers",
        "UPDATE store SET store_id = 1",
        "UPDATE centers SET store_id = 'one'",
        "INSERT INTO store SELECT * FROM store",
        "ALTER TABLE centers ADD COLUMN more TEXT",
        "ALTER TABLE centers RENAME COLUMN example TO text",
        "CREATE TABLE more (a)",
        "CREATE INDEX more ON centers (kind)",
        'CREATE VIEW "two\nlines" AS SELECT * FROM centers',
        "CREATE TRIGGER centers AFTER UPDATE ON centers BEGIN DELETE FROM centers; END",
        "CREATE TRIGGER more BEFORE INSERT ON centers BEGIN DELETE FROM centers; END",
    ],
)
def test_damaged_store_is_rejected_in_one_line(store: InterestStore, path: Path, damage: str) -> None:
    store.like("a", _AXES[0])
    _sql(path, damage)
    for use in (lambda: InterestStore(path).centers(), lambda: InterestStore(path).export()):
        with pytest.raises(InputError, match="is damaged") as caught:
            use()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("others", "own"), [(1, 2), (3, 3), (8, 4), (12, 24)])
def test_pages_of_another_store_from_its_journal_are_noticed(path: Path, others: int, own: int) -> None:
    def make(path: Path, count: int) -> None:
        store = InterestStore(path, wide, settings=InterestSettings(near_cosine=1, max_centers=99))
        for number in range(count):
            store.like(f"{path.name} {number}", random_numbers.standard_normal(384))

    wide, random_numbers = EncoderIdentity("wide", "0123456789abcdef", 384), np.random.default_rng(0)
    other = path.with_name("other.db")
    make(path, own)
    make(other, others)
    with contextlib.closing(sqlite3.connect(other, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # the journal is complete as soon as it is written
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE store SET reactions = reactions + 1")
        connection.execute("UPDATE centers SET uses = uses + 1 WHERE id = 1")
        shutil.copy(f"{other}-journal", f"{path}-journal")
        connection.execute("ROLLBACK")
    with contextlib.suppress(InputError):
        examples = {center.example.split()[0] for center in InterestStore(path).centers()}
        assert examples == {"other.db"}  # all pages were in the journal


_ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
_ENDLESS_CENTERS = (
    f"CREATE VIEW centers AS {_ENDLESS} i AS id, 'interest' AS kind, '' AS example, 1 AS uses, 0 AS views, "
    "0.0 AS view_seconds, 0.0 AS first_used, 0.0 AS last_used, x'' AS vector FROM n"
)
_ENDLESS_STORE = (
    f"CREATE VIEW store AS {_ENDLESS} max(i) AS encoder_name, '' AS encoder_fingerprint, 8 AS dimension, "
    "0 AS reactions FROM n"
)


@pytest.mark.parametrize("view", [_ENDLESS_CENTERS, _ENDLESS_STORE])
def test_sql_view_in_place_of_a_table_is_rejected_without_being_computed(
    store: InterestStore, path: Path, view: str
) -> None:
    _sql(path, f"DROP TABLE {view.split()[2]}", view)
    uses = (lambda: InterestStore(path), lambda: InterestStore(path, _ENCODER), lambda: store.like("a", _AXES[0]))
    for use in uses:
        with pytest.raises(InputError, match=r"is damaged: .*restore it from a backup, or remove it"):
            use()


def test_store_with_a_trigger_is_rejected_and_unchanged(store: InterestStore, path: Path) -> None:
    store.like("a", _AXES[0])
    _sql(path, "CREATE TRIGGER more AFTER INSERT ON centers BEGIN DELETE FROM centers; END")
    with pytest.raises(InputError, match="it contains the trigger 'more', which no store has"):
        store.like("b", _AXES[1])
    _sql(path, "DROP TRIGGER more")
    assert [center.example for center in store.centers()] == ["a"]


def test_trusted_schema_is_off(path: Path) -> None:
    for database in (Database(path, create=True), Database(":memory:", create=True)):
        with database.transaction("read") as connection:
            assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)


def test_error_for_a_path_with_a_newline_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "two\nlines.db"
    store = InterestStore(path, _ENCODER)
    _sql(path, "UPDATE store SET reactions = 5")
    path_is_absent = lambda: InterestStore(path.with_name("ab\nsent.db"))  # noqa: E731
    for use in (store.centers, lambda: InterestStore(path), path_is_absent):
        with pytest.raises(InputError) as caught:
            use()
        assert "\n" not in str(caught.value)


def test_sqlite_error_with_a_newline_becomes_one_line(store: InterestStore, path: Path) -> None:
    _sql(path, "PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = 'CREATE TABLE\n\n(' WHERE name = 'store'")
    with pytest.raises(InputError, match="is damaged") as caught:
        store.centers()
    assert "\n" not in str(caught.value)


def test_flipped_or_missing_bytes_cause_an_error_or_valid_centers(store: InterestStore, path: Path) -> None:
    for axis in range(8):
        store.like(f"axis {axis} ".ljust(120, "x"), _AXES[axis])
    whole = path.read_bytes()
    chance = random.Random(0)  # noqa: S311 - a test
    for damage in range(200):
        content = bytearray(whole)
        for _ in range(20):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.randrange(len(content))] if damage % 2 else content)
        with contextlib.suppress(InputError):
            centers = InterestStore(path).centers()
            assert all(np.isfinite(center.vector).all() and center.weight >= 0 for center in centers)


def test_store_that_stays_locked_raises_input_error(path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr("edgeembed_runtime.interests.database._TIMEOUT_SECONDS", 0.05)
    store = InterestStore(path, _ENCODER, clock=clock)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert store.centers() == []
        with pytest.raises(InputError, match="was locked by another process for too long"):
            store.like("a", _AXES[0])
        other.execute("ROLLBACK")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="was locked by another process for too long"):
            store.centers()
    assert store.like("a", _AXES[0]) == 1


@pytest.fixture
def read_only(path: Path, clock: Clock) -> Iterator[Path]:
    """Return a store that this process can read but not write. If this is root, it becomes another user meanwhile."""
    if not hasattr(os, "geteuid"):
        pytest.skip("this system has no permissions to take away")
    InterestStore(path, _ENCODER, clock=clock).like("a", _AXES[0])
    user = os.geteuid()
    modes = {folder: stat.S_IMODE(folder.stat().st_mode) for folder in path.parents}
    closed = {folder: mode for folder, mode in modes.items() if user == 0 and mode & 0o555 != 0o555}
    for folder, mode in closed.items():
        folder.chmod(mode | 0o555)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    os.seteuid(user or 65534)
    yield path
    os.seteuid(user)
    path.parent.chmod(0o755)
    for folder, mode in closed.items():
        folder.chmod(mode)


def test_read_only_store_can_be_read_and_rejects_writes(read_only: Path, clock: Clock) -> None:
    store = InterestStore(read_only, _ENCODER, clock=clock)
    assert [center.example for center in store.centers()] == ["a"]
    with pytest.raises(InputError, match="cannot be written: it is read-only"):
        store.like("a", _AXES[0])
    with pytest.raises(InputError, match="cannot be written: it is read-only"):
        store.forget_all()
    with pytest.raises(InputError, match=r"cannot create .*Permission denied"):
        InterestStore(read_only.with_name("new.db"), _ENCODER)


def test_interrupted_reaction_leaves_the_store_unchanged(
    store: InterestStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.like("a", _AXES[0])
    before = store.export()

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    # Called in the middle of a reaction: after the reaction was counted, before its center is written.
    monkeypatch.setattr("edgeembed_runtime.interests.sql._to_blob", fail)
    for vector in (_AXES[0], _AXES[1]):
        with pytest.raises(KeyboardInterrupt):
            store.like("b", vector)
    assert store.export() == before
    _assert_consistent(path)


@pytest.mark.parametrize("in_memory", [False, True])
def test_threads_can_share_a_store(path: Path, *, in_memory: bool) -> None:
    store = InterestStore(":memory:" if in_memory else path, _ENCODER)
    failures: list[BaseException] = []

    def react() -> None:
        try:
            for axis in range(8):
                store.like(f"axis {axis}", _AXES[axis])
                store.centers()
        except BaseException as failure:  # noqa: BLE001 - the main thread asserts that there is none
            failures.append(failure)

    threads = [threading.Thread(target=react) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [center.uses for center in store.centers()] == [4] * 8
    assert store.export()["reactions"] == 32


def _lines_until_end(process: subprocess.Popen[str]) -> tuple[Counter[str], str]:
    acknowledged: Counter[str] = Counter()
    for line in _pipe(process.stdout):
        if line.startswith("end"):
            return acknowledged, line
        if not line.startswith("started"):
            acknowledged[line.strip()] += 1
    raise AssertionError("the worker process has ended")


def _stored(path: Path) -> Counter[str]:
    centers = InterestStore(path).centers()
    return Counter({f"{c.kind}-{c.example.removeprefix('axis ')}": c.uses + c.views for c in centers})


@_needs_fork
def test_concurrent_processes_lose_no_reaction(path: Path, worker: subprocess.Popen[str]) -> None:
    _pipe(worker.stdin).write(f"{path} 12 4\n")
    acknowledged, end = _lines_until_end(worker)
    assert end == "end [0, 0, 0, 0]\n"
    assert acknowledged.total() == 48
    assert _stored(path) == acknowledged
    _assert_consistent(path)


def _kill_at_random(path: Path, process: subprocess.Popen[str], chance: random.Random) -> None:
    """Kill a worker process at a random moment of one of its first reactions, and check the store."""
    acknowledged = _stored(path) if path.exists() else Counter()
    _pipe(process.stdin).write(f"{path} 1000000 1\n")
    lines = iter(_pipe(process.stdout))
    started = next(line for line in lines if line.startswith("started") or acknowledged.update([line.strip()]))
    acknowledged.update(next(lines).strip() for _ in range(chance.randrange(3)))
    time.sleep(chance.expovariate(1 / 0.005))
    os.kill(int(started.split()[1]), signal.SIGKILL)
    rest, end = _lines_until_end(process)
    assert end == f"end [{int(signal.SIGKILL)}]\n"
    acknowledged.update(rest)
    InterestStore(path, _ENCODER)  # creates it if the process was killed before it did
    stored = _stored(path)
    assert acknowledged <= stored, "a reaction was lost"
    assert (stored - acknowledged).total() <= 1, "the store has reactions that nobody made"
    _assert_consistent(path)


def _kill_often(folder: Path, process: subprocess.Popen[str], kills: int) -> None:
    chance = random.Random(kills)  # noqa: S311 - a test
    for kill in range(kills):
        is_new = kill % 4 == 3  # killed perhaps while it creates the store
        _kill_at_random(folder / (f"{kill}.db" if is_new else "interests.db"), process, chance)


@_needs_fork
def test_killed_processes_lose_no_reaction_and_leave_none_half_written(
    tmp_path: Path, worker: subprocess.Popen[str]
) -> None:
    _kill_often(tmp_path, worker, kills=20)


@pytest.mark.slow
@_needs_fork
def test_hundreds_of_killed_processes_lose_no_reaction_and_leave_none_half_written(
    tmp_path: Path, worker: subprocess.Popen[str]
) -> None:
    _kill_often(tmp_path, worker, kills=600)


_FORKING = """
import os, sys, threading
import numpy as np
from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.interests.store import InterestStore

encoder = EncoderIdentity("tiny", "0123456789abcdef", 8)
store, memory = InterestStore(sys.argv[1], encoder), InterestStore(":memory:", encoder)
memory.like("a", np.eye(8)[0])
stop = threading.Event()
count = 0

def react():
    global count
    while not stop.is_set():
        store.like("thread", np.eye(8)[0])
        count += 1

thread = threading.Thread(target=react)
thread.start()
for _ in range(10):  # each fork happens at some moment of the thread's reactions
    child = os.fork()
    if child == 0:
        store.like("child", np.eye(8)[1])
        memory.like("child", np.eye(8)[0])
        os._exit(memory.centers()[0].uses)
    assert os.waitpid(child, 0)[1] >> 8 == 2
stop.set()
thread.join()
assert memory.centers()[0].uses == 1
assert {center.example: center.uses for center in store.centers()} == {"thread": count, "child": 10}
"""


@_needs_fork
def test_store_works_after_a_fork_at_any_moment(path: Path) -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKING, str(path)], check=True, timeout=60)
    _assert_consistent(path)


def test_store_loads_neither_onnxruntime_nor_tokenizers(path: Path) -> None:
    code = (
        "import sys\nfrom edgeembed_runtime.interests.store import InterestStore\n"
        "assert not {'onnxruntime', 'tokenizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
