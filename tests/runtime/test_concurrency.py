"""The thread pool, the number of cores, and forks while threads encode, search or change an index."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import edgeembed_runtime.concurrency
import numpy as np
import pytest
from edgeembed_runtime import Encoder, Index
from edgeembed_runtime.concurrency import ForkGate, available_cores, run_in_threads
from edgeembed_runtime.index.engine import EngineName, IndexPrecision
from edgeembed_runtime.index.vectors import StoredVectors

_needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

_TIMEOUT_S = 30
_NUM_DOCUMENTS = 3000


def test_results_are_in_the_order_of_the_items() -> None:
    assert list(run_in_threads(lambda i: i * i, range(100), threads=4)) == [i * i for i in range(100)]


def test_items_are_processed_in_parallel() -> None:
    both = threading.Barrier(2, timeout=60)
    assert len(list(run_in_threads(lambda _: both.wait(), range(2), threads=2))) == 2


def test_error_drops_items_that_have_not_started() -> None:
    started = []

    def work(i: int) -> None:
        started.append(i)
        if i == 0:
            raise ValueError(i)
        time.sleep(0.01)  # all items would take five seconds: the error is seen long before

    with pytest.raises(ValueError, match="0"):
        list(run_in_threads(work, range(1000), threads=2))
    assert len(started) < 1000


def test_one_thread_means_the_calling_thread() -> None:
    assert set(run_in_threads(lambda _: threading.get_ident(), range(3), threads=1)) == {threading.get_ident()}


@pytest.mark.parametrize(("quota", "cores"), [("max 100000", 8), ("200000 100000", 2), ("50000 100000", 1), ("x", 8)])
def test_container_quota_limits_the_cores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quota: str, cores: int
) -> None:
    (tmp_path / "cpu.max").write_text(quota, encoding="ascii")
    monkeypatch.setattr(edgeembed_runtime.concurrency, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert available_cores() == cores


def test_cpu_affinity_limits_the_cores_without_a_quota(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(edgeembed_runtime.concurrency, "_QUOTA", tmp_path / "none")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert available_cores() == 2


def _wait(child: int) -> int:
    """Return the exit code of a child process; kill it if it hangs, and return the negative signal number."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _exit_code(check: Callable[[], bool]) -> int:
    """Fork a child that calls a function; return its exit code: 0 if the function returns True."""
    with warnings.catch_warnings():  # Python 3.12 and later warn about forking with threads
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return _wait(child)


@contextmanager
def _repeated(work: Callable[[], object], threads: int) -> Iterator[None]:
    """Repeat a function in threads until the `with` block ends."""
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
    vectors = np.random.default_rng(0).standard_normal((_NUM_DOCUMENTS, encoder.dimension))
    texts = [str(i) for i in range(_NUM_DOCUMENTS)]
    return Index.build(encoder, texts, embeddings=vectors, precision=precision, engine=engine)


_INDEXES: list[tuple[IndexPrecision, EngineName]] = [
    ("int8", "numpy"),
    ("binary", "numpy"),
    ("float32", "faiss-ivf"),
    ("float32", "faiss-hnsw"),
]


@_needs_fork
@pytest.mark.parametrize(("precision", "engine"), _INDEXES)
def test_child_forked_during_searches_can_search(
    encoder: Encoder, precision: IndexPrecision, engine: EngineName
) -> None:
    index = _index(encoder, precision, engine)
    query = np.ones(encoder.dimension)
    expected = index.search(query)
    with _repeated(lambda: index.search(query), threads=2):
        codes = [_exit_code(lambda: index.search(query) == expected) for _ in range(15)]
    assert codes == [0] * 15


@_needs_fork
@pytest.mark.parametrize(("precision", "engine"), _INDEXES)
def test_child_forked_during_changes_can_change_the_index(
    encoder: Encoder, precision: IndexPrecision, engine: EngineName
) -> None:
    index = _index(encoder, precision, engine)
    more = np.random.default_rng(1).standard_normal((50, encoder.dimension))

    def change() -> None:
        index.remove(index.add(["more"] * 50, embeddings=more))

    def check() -> bool:
        count = len(index)
        added = index.add(["wanted"], embeddings=10 * np.eye(1, encoder.dimension))
        hits = index.search(np.eye(1, encoder.dimension)[0], top_k=1)
        thread = threading.Thread(target=index.search, args=(more[0],))
        thread.start()
        thread.join()
        return [hit.id for hit in hits] == added and len(index) == count + 1

    with _repeated(change, threads=1):
        codes = [_exit_code(check) for _ in range(5)]
    assert codes == [0] * 5


def test_exact_searches_run_at_the_same_time(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    index = _index(encoder, "int8", "numpy")
    compare, both = StoredVectors.cosine_similarity, threading.Barrier(2, timeout=_TIMEOUT_S)

    def wait_for_the_other(self: StoredVectors, *given: Any) -> Any:
        both.wait()  # raises BrokenBarrierError if the other thread never gets here
        return compare(self, *given)

    monkeypatch.setattr(StoredVectors, "cosine_similarity", wait_for_the_other)
    with ThreadPoolExecutor(2) as pool:
        plain = list(pool.map(lambda _: index.search(np.ones(8)), range(2)))
        filtered = list(pool.map(lambda _: index.search(np.ones(8), filter=lambda _: True), range(2)))
    assert plain[0] == plain[1] == filtered[0] == filtered[1]


def test_search_does_not_wait_for_a_change(encoder: Encoder) -> None:
    index = _index(encoder, "float32", "numpy")
    expected = index.search("cat")
    with index._collection._lock.write():
        assert index.search("cat") == expected


def _codes_while_encoding(encoder: Encoder, count: int) -> list[int]:
    expected = encoder.encode("a dog")
    with _repeated(lambda: encoder.encode("the cat reads a file line by line"), threads=2):
        return [_exit_code(lambda: np.array_equal(encoder.encode("a dog"), expected)) for _ in range(count)]


@_needs_fork
def test_child_forked_during_encoding_can_encode(encoder: Encoder) -> None:
    assert _codes_while_encoding(encoder, 30) == [0] * 30


@_needs_fork
@pytest.mark.slow
def test_hundreds_of_children_forked_during_encoding_can_encode(shipped: Path) -> None:
    assert _codes_while_encoding(Encoder(), 200) == [0] * 200


@_needs_fork
def test_child_of_a_child_can_encode(encoder: Encoder) -> None:
    def encodes() -> bool:
        return bool(encoder.encode("a dog").any())

    assert _exit_code(lambda: _exit_code(encodes) == 0 and encodes()) == 0


@_needs_fork
@pytest.mark.parametrize("place", ["is_set", "wait"])
def test_fork_does_not_wait_for_work_that_ctrl_c_ended_at_the_gate(place: str) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    gate = ForkGate()
    event = threading.Event()
    if place == "is_set":
        event.set()
    setattr(event, place, interrupt)
    gate._open, is_open = event, gate._open
    with pytest.raises(KeyboardInterrupt):
        gate.run(lambda: None)
    gate._open = is_open
    closing = threading.Thread(target=gate._close, daemon=True)  # what a fork does first
    closing.start()
    closing.join(_TIMEOUT_S)
    assert not closing.is_alive()


@_needs_fork
def test_fork_waits_for_running_work() -> None:
    gate, started, end = ForkGate(), threading.Event(), threading.Event()

    def work() -> str:
        started.set()
        end.wait()
        return "done"

    results: list[str] = []
    worker = threading.Thread(target=lambda: results.append(gate.run(work)))
    worker.start()
    started.wait()
    threading.Timer(0.05, end.set).start()
    # Without the gate, `work` would never finish in the child.
    assert _exit_code(lambda: end.is_set() and gate.run(lambda: True)) == 0
    worker.join()
    assert results == ["done"]
