"""A child that was forked while its parent's threads encoded goes on encoding."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import Encoder
from edgeembed_runtime.forking import ForkGate

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

_PATIENCE_S = 60


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


def _fork() -> int:
    with warnings.catch_warnings():  # from Python 3.12 on it warns of threads
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


@contextmanager
def _encoding(encoder: Encoder, threads: int) -> Iterator[None]:
    """Have threads encode for the length of a `with` block."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            encoder.encode("the cat reads a file line by line")

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        done.set()
        for worker in workers:
            worker.join()


def _forks(encoder: Encoder, count: int) -> list[int]:
    expected = encoder.encode("a dog")
    codes = []
    with _encoding(encoder, threads=2):
        for _ in range(count):
            child = _fork()
            if child == 0:
                os._exit(0 if np.array_equal(encoder.encode("a dog"), expected) else 1)
            codes.append(_wait(child))
    return codes


def test_a_child_forked_while_others_encode_does_not_hang(encoder: Encoder) -> None:
    assert _forks(encoder, 30) == [0] * 30


@pytest.mark.slow
def test_hundreds_of_children_forked_while_others_encode_do_not_hang(shipped: Path) -> None:
    assert _forks(Encoder(), 400) == [0] * 400


def test_a_child_of_a_child_encodes_too(encoder: Encoder) -> None:
    child = _fork()
    if child == 0:
        grandchild = _fork()
        if grandchild == 0:
            os._exit(0 if encoder.encode("a dog").any() else 1)
        code = _wait(grandchild)
        os._exit(code if encoder.encode("a dog").any() else 1)
    assert _wait(child) == 0


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
    child = _fork()  # which would leave `work` unfinished in the child for ever
    if child == 0:
        os._exit(0 if end.is_set() and gate.run(lambda: True) else 1)
    assert _wait(child) == 0
    worker.join()
    assert results == ["done"]
