"""Subjects that need the standard library alone: a module of functions that every worker can import."""

from collections.abc import Callable
from pathlib import Path

import pytest
from edgeembed_bench import Subject

_FUNCTIONS = """
import os, sys, time

def embed(texts):
    return [one(text) for text in texts]

def one(text):
    if text == "noise":
        print("noise", flush=True)
    if text == "crash":
        print("first line", file=sys.stderr)
        raise RuntimeError("the model fell over")
    if text == "vanish":
        os._exit(3)
    if text == "sleep":
        time.sleep(60)
    return [float("nan")] * 3 if text == "nan" else [float(len(text)), 2.0, 3.0]

def slow(texts):
    end = time.perf_counter() + 0.002
    while time.perf_counter() < end:
        pass
    return embed(texts)

def threads(texts):
    return [[0.0] * int(os.environ["OMP_NUM_THREADS"]) for _ in texts]

def batch_size(texts):
    return [[float(len(texts))] for _ in texts]

def one_for_all(texts):
    return [[1.0, 2.0, 3.0]]
"""

Stub = Callable[..., Subject]


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """Gives a subject by its name and the function of the module that it calls."""
    (tmp_path / "trivial.py").write_text(_FUNCTIONS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def made(name: str = "stub", function: str = "embed") -> Subject:
        return Subject(name, "function", f"trivial:{function}")

    return made
