"""Many texts on many threads: the order, the cores, the errors."""

import os
import shutil
import threading
from pathlib import Path

import edgeembed_runtime._threads
import edgeembed_runtime.pipeline
import numpy as np
import pytest
from edgeembed_runtime import Bundle, Encoder, InputError, VerificationError
from edgeembed_runtime._threads import available_cores, run_in_threads
from edgeembed_runtime.backends import Backend, load_backend

_TEXTS = [f"{'cat ' * (i % 9)}dog {i}" for i in range(300)]


def test_results_come_in_the_order_of_the_items() -> None:
    assert list(run_in_threads(lambda i: i * i, range(100), threads=4)) == [i * i for i in range(100)]


def test_items_are_worked_on_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=60)
    assert len(list(run_in_threads(lambda _: both.wait(), range(2), threads=2))) == 2


def test_an_error_drops_what_has_not_begun() -> None:
    begun = []

    def work(i: int) -> None:
        begun.append(i)
        raise ValueError(i)

    with pytest.raises(ValueError, match="0"):
        list(run_in_threads(work, range(1000), threads=2))
    assert len(begun) < 1000


def test_one_thread_is_the_callers_own() -> None:
    assert set(run_in_threads(lambda _: threading.get_ident(), range(3), threads=1)) == {threading.get_ident()}


@pytest.mark.parametrize(("quota", "cores"), [("max 100000", 8), ("200000 100000", 2), ("50000 100000", 1), ("x", 8)])
def test_a_containers_quota_limits_the_cores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quota: str, cores: int
) -> None:
    (tmp_path / "cpu.max").write_text(quota, encoding="ascii")
    monkeypatch.setattr(edgeembed_runtime._threads, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert available_cores() == cores


def test_without_a_quota_the_cores_are_those_the_process_is_bound_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(edgeembed_runtime._threads, "_QUOTA", tmp_path / "none")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert available_cores() == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_many_texts_have_the_vectors_that_each_has_alone(bundle_path: Path, threads: int) -> None:
    encoder = Encoder.load(bundle_path, threads=threads)
    alone = np.stack([encoder.encode(text) for text in _TEXTS])
    assert np.array_equal(encoder.encode(_TEXTS), alone)


def test_many_texts_are_worked_on_by_as_many_threads_as_asked_for_each_with_a_model_that_is_kept(
    bundle_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three, users = threading.Barrier(3, timeout=60), list[set[int]]()

    class Meeting:
        def __init__(self, backend: Backend) -> None:
            self._backend = backend
            self._users = set[int]()
            users.append(self._users)

        def embed(self, token_ids: list[int]) -> object:
            if not self._users:
                three.wait()  # which fails unless three models are used at once
            self._users.add(threading.get_ident())
            return self._backend.embed(token_ids)

    def load(bundle: Bundle, *, trusted: bool) -> Meeting:
        return Meeting(load_backend(bundle, trusted=trusted))

    monkeypatch.setattr(edgeembed_runtime.pipeline, "load_backend", load)
    encoder = Encoder.load(bundle_path, threads=3)
    first, again = encoder.encode(_TEXTS), encoder.encode(_TEXTS)
    assert np.array_equal(first, again)
    assert len(users) == 3


def test_few_texts_load_no_further_model(bundle_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Encoder.load(bundle_path, threads=8)
    monkeypatch.setattr(edgeembed_runtime.pipeline, "load_backend", None)
    assert len(encoder.encode(_TEXTS[:50])) == 50


def test_a_text_that_is_none_is_named_from_any_thread(bundle_path: Path) -> None:
    encoder = Encoder.load(bundle_path, threads=3)
    with pytest.raises(InputError, match="text 200 contains half of a surrogate pair"):
        encoder.encode([*_TEXTS[:200], "\ud800", *_TEXTS[201:]])
    with pytest.raises(InputError, match="text 7 is too long"):
        encoder.encode([*_TEXTS[:7], "cat " * 99, *_TEXTS[8:]], on_truncate="error")


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_a_number_of_threads_that_is_none_is_refused(bundle_path: Path, threads: int) -> None:
    with pytest.raises(InputError, match="expected an integer of at least 1, or None"):
        Encoder.load(bundle_path, threads=threads)


def test_many_texts_are_encoded_though_the_bundle_is_gone(bundle_copy: Path) -> None:
    encoder = Encoder.load(bundle_copy, threads=2)
    alone = np.stack([encoder.encode(text) for text in _TEXTS])
    shutil.rmtree(bundle_copy)
    assert np.array_equal(encoder.encode(_TEXTS), alone)


class _Waiting:
    """A backend whose first text waits until another thread has tried to load one of its own."""

    def __init__(self, backend: Backend, tried: threading.Event) -> None:
        self._backend = backend
        self._tried = tried

    def embed(self, token_ids: list[int]) -> object:
        assert self._tried.wait(60), "no other thread tried to load a model"
        return self._backend.embed(token_ids)


def _encoder_that_waits(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, tried: threading.Event
) -> tuple[Encoder, list[bool]]:
    """Return an encoder with two threads, and a list that grows whenever a further model is asked for."""
    further: list[bool] = []

    def load(bundle: Bundle, *, trusted: bool) -> object:
        try:
            return _Waiting(load_backend(bundle, trusted=trusted), tried)
        finally:
            if is_loaded:
                further.append(True)
                tried.set()

    is_loaded = False
    monkeypatch.setattr(edgeembed_runtime.pipeline, "load_backend", load)
    encoder = Encoder.load(bundle, threads=2)
    is_loaded = True
    return encoder, further


def test_a_model_that_was_changed_since_is_not_passed_over_in_silence(
    bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, _ = _encoder_that_waits(bundle_copy, monkeypatch, threading.Event())
    model = bundle_copy / "onnx" / "model.onnx"
    model.write_bytes(model.read_bytes()[:-1] + b"\0")
    with pytest.raises(VerificationError, match=r"model\.onnx has SHA-256"):
        encoder.encode(_TEXTS)


def test_a_model_that_threads_had_to_share_is_shared_no_longer_than_needed(
    bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()
    encoder, further = _encoder_that_waits(bundle_copy, monkeypatch, tried)
    bundle_copy.rename(bundle_copy.parent / "away")
    encoder.encode(_TEXTS)
    assert further
    (bundle_copy.parent / "away").rename(bundle_copy)
    further.clear()
    tried.clear()
    encoder.encode(_TEXTS)
    assert len(further) == 1
