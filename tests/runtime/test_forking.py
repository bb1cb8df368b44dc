"""A child that was forked while its parent's threads encoded, searched or changed an index goes on doing so."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Index
from edgeembed_runtime.forking import ForkGate
from edgeembed_runtime.index.engine import EngineName, IndexPrecision

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

_PATIENCE_S = 30
_COUNT = 3000


def _wait(child: int) -> int:
    """Give a child's exit code; one that hangs is killed, and gives a signal's number."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _exit_code(is_right: Callable[[], bool]) -> int:
    """Give the exit code of a forked child: 0 if what it finds is right."""
    with warnings.catch_warnings():  # from Python 3.12 on it warns of threads
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if is_right() else 1)
        finally:
            os._exit(2)
    return _wait(child)


@contextmanager
def _repeating(work: Callable[[], object], threads: int) -> Iterator[None]:
    """Have threads repeat some work for the length of a `with` block."""
    done = threading.Event()

    def repeat() -> None:
        while not done.is_set():
            work()

    workers = [threading.Thread(target=repeat) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        done.set()
        for worker in workers:
            worker.join()


def _index(encoder: Encoder, precision: IndexPrecision, engine: EngineName) -> Index:
    if engine != "numpy":
        pytest.importorskip("faiss")
    vectors = np.random.default_rng(0).standard_normal((_COUNT, encoder.dimension))
    texts = [str(i) for i in range(_COUNT)]
    return Index.build(encoder, texts, embeddings=vectors, precision=precision, engine=engine)


_KINDS: list[tuple[IndexPrecision, EngineName]] = [
    ("int8", "numpy"),
    ("binary", "numpy"),
    ("float32", "faiss-ivf"),
    ("float32", "faiss-hnsw"),
]


@pytest.mark.parametrize(("precision", "engine"), _KINDS)
def test_a_child_forked_while_threads_search_searches(
    encoder: Encoder, precision: IndexPrecision, engine: EngineName
) -> None:
    index = _index(encoder, precision, engine)
    query = np.ones(encoder.dimension)
    expected = index.search(query)
    with _repeating(lambda: index.search(query), threads=2):
        codes = [_exit_code(lambda: index.search(query) == expected) for _ in range(15)]
    assert codes == [0] * 15


@pytest.mark.parametrize(("precision", "engine"), _KINDS)
def test_a_child_forked_while_a_thread_changes_the_index_changes_it_too(
    encoder: Encoder, precision: IndexPrecision, engine: EngineName
) -> None:
    index = _index(encoder, precision, engine)
    more = np.random.default_rng(1).standard_normal((50, encoder.dimension))

    def change() -> None:
        index.remove(index.add(["more"] * 50, embeddings=more))

    def is_right() -> bool:
        count = len(index)
        added = index.add(["wanted"], embeddings=10 * np.eye(1, encoder.dimension))
        found = index.search(np.eye(1, encoder.dimension)[0], top_k=1)
        thread = threading.Thread(target=index.search, args=(more[0],))
        thread.start()
        thread.join()
        return [hit.id for hit in found] == added and len(index) == count + 1

    with _repeating(change, threads=1):
        codes = [_exit_code(is_right) for _ in range(5)]
    assert codes == [0] * 5


def test_a_search_does_not_wait_for_a_change(encoder: Encoder) -> None:
    index = _index(encoder, "float32", "numpy")
    expected = index.search("cat")
    with index._collection._lock.write():
        assert index.search("cat") == expected


def _codes_while_encoding(encoder: Encoder, count: int) -> list[int]:
    expected = encoder.encode("a dog")
    with _repeating(lambda: encoder.encode("the cat reads a file line by line"), threads=2):
        return [_exit_code(lambda: np.array_equal(encoder.encode("a dog"), expected)) for _ in range(count)]


def test_a_child_forked_while_others_encode_does_not_hang(encoder: Encoder) -> None:
    assert _codes_while_encoding(encoder, 30) == [0] * 30


@pytest.mark.slow
def test_hundreds_of_children_forked_while_others_encode_do_not_hang(shipped: Path) -> None:
    assert _codes_while_encoding(Encoder(), 400) == [0] * 400


def test_a_child_of_a_child_encodes_too(encoder: Encoder) -> None:
    def encodes() -> bool:
        return bool(encoder.encode("a dog").any())

    assert _exit_code(lambda: _exit_code(encodes) == 0 and encodes()) == 0


def test_a_fork_waits_for_work_and_work_for_the_fork() -> None:
    gate, begun, end = ForkGate(), threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        end.wait()
        return "done"

    results: list[str] = []
    worker = threading.Thread(target=lambda: results.append(gate.run(work)))
    worker.start()
    begun.wait()
    threading.Timer(0.05, end.set).start()
    # Without the gate `work` would be unfinished in the child for ever.
    assert _exit_code(lambda: end.is_set() and gate.run(lambda: True)) == 0
    worker.join()
    assert results == ["done"]
