"""Encoding of many texts on several threads, and the progress counter."""

import io
import shutil
import threading
from pathlib import Path

import edgeembed_runtime.pipeline
import numpy as np
import pytest
from edgeembed_runtime import Bundle, Encoder, InputError, VerificationError
from edgeembed_runtime.backends import Backend, load_backend
from edgeembed_runtime.pipeline import with_counter

_TEXTS = [f"{'cat ' * (i % 9)}dog {i}" for i in range(300)]


@pytest.mark.parametrize("threads", [1, 3])
def test_batch_equals_single_texts(bundle_path: Path, threads: int) -> None:
    encoder = Encoder.load(bundle_path, threads=threads)
    alone = np.stack([encoder.encode(text) for text in _TEXTS])
    assert np.array_equal(encoder.encode(_TEXTS), alone)


def test_each_thread_loads_one_model_and_reuses_it(bundle_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three, users = threading.Barrier(3, timeout=60), list[set[int]]()

    class CountingBackend:
        def __init__(self, backend: Backend) -> None:
            self._backend = backend
            self._users = set[int]()
            users.append(self._users)

        def run(self, token_ids: list[int]) -> object:
            if not self._users:
                three.wait()  # fails unless three models are used at the same time
            self._users.add(threading.get_ident())
            return self._backend.run(token_ids)

    def load(bundle: Bundle, *, trusted: bool) -> CountingBackend:
        return CountingBackend(load_backend(bundle, trusted=trusted))

    monkeypatch.setattr(edgeembed_runtime.pipeline, "load_backend", load)
    encoder = Encoder.load(bundle_path, threads=3)
    first, again = encoder.encode(_TEXTS), encoder.encode(_TEXTS)
    assert np.array_equal(first, again)
    assert len(users) == 3


def test_few_texts_do_not_load_another_model(bundle_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Encoder.load(bundle_path, threads=8)
    monkeypatch.setattr(edgeembed_runtime.pipeline, "load_backend", None)
    assert len(encoder.encode(_TEXTS[:50])) == 50


def test_invalid_text_raises_with_its_position_from_any_thread(bundle_path: Path) -> None:
    encoder = Encoder.load(bundle_path, threads=3)
    with pytest.raises(InputError, match="text 200 contains a lone surrogate"):
        encoder.encode([*_TEXTS[:200], "\ud800", *_TEXTS[201:]])
    with pytest.raises(InputError, match="text 7 is too long"):
        encoder.encode([*_TEXTS[:7], "cat " * 99, *_TEXTS[8:]], on_truncate="error")


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_invalid_number_of_threads_raises(bundle_path: Path, threads: int) -> None:
    with pytest.raises(InputError, match="expected an integer of at least 1, or None"):
        Encoder.load(bundle_path, threads=threads)


def test_texts_are_encoded_after_the_bundle_was_removed(bundle_copy: Path) -> None:
    encoder = Encoder.load(bundle_copy, threads=2)
    alone = np.stack([encoder.encode(text) for text in _TEXTS])
    shutil.rmtree(bundle_copy)
    assert np.array_equal(encoder.encode(_TEXTS), alone)


class _WaitingBackend:
    """A backend that waits until another thread has tried to load a model."""

    def __init__(self, backend: Backend, tried: threading.Event) -> None:
        self._backend = backend
        self._tried = tried

    def run(self, token_ids: list[int]) -> object:
        assert self._tried.wait(60), "no other thread tried to load a model"
        return self._backend.run(token_ids)


def _waiting_encoder(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, tried: threading.Event
) -> tuple[Encoder, list[bool]]:
    """Return an encoder with two threads, and a list that grows by one for each further model that is loaded."""
    loads: list[bool] = []

    def load(bundle: Bundle, *, trusted: bool) -> object:
        try:
            return _WaitingBackend(load_backend(bundle, trusted=trusted), tried)
        finally:
            if is_loaded:
                loads.append(True)
                tried.set()

    is_loaded = False
    monkeypatch.setattr(edgeembed_runtime.pipeline, "load_backend", load)
    encoder = Encoder.load(bundle, threads=2)
    is_loaded = True
    return encoder, loads


def test_model_changed_after_loading_raises(bundle_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, _ = _waiting_encoder(bundle_copy, monkeypatch, threading.Event())
    model = bundle_copy / "onnx" / "model.onnx"
    model.write_bytes(model.read_bytes()[:-1] + b"\0")
    with pytest.raises(VerificationError, match=r"model\.onnx has SHA-256"):
        encoder.encode(_TEXTS)


def test_threads_load_their_own_model_again_after_the_bundle_returns(
    bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()
    encoder, loads = _waiting_encoder(bundle_copy, monkeypatch, tried)
    bundle_copy.rename(bundle_copy.parent / "away")
    encoder.encode(_TEXTS)
    assert loads
    (bundle_copy.parent / "away").rename(bundle_copy)
    loads.clear()
    tried.clear()
    encoder.encode(_TEXTS)
    assert len(loads) == 1


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_counter_is_not_shown_for_short_work(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    assert list(with_counter([2, 1], 3, "texts")) == [2, 1]
    assert stream.getvalue() == ""


def test_counter_is_one_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(edgeembed_runtime.pipeline, "_COUNTER_DELAY_S", 0)
    monkeypatch.setattr(edgeembed_runtime.pipeline, "_COUNTER_INTERVAL_S", 0)
    assert list(with_counter([2, 1], 3, "texts")) == [2, 1]
    assert stream.getvalue() == "\r2 of 3 texts\r3 of 3 texts\r3 of 3 texts\n"


def test_counter_is_not_shown_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(edgeembed_runtime.pipeline, "_COUNTER_DELAY_S", 0)
    assert list(with_counter([2, 1], 3, "texts")) == [2, 1]
    assert stream.getvalue() == ""
