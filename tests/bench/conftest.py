"""Fixtures: subjects that need only the standard library, and simulated reports."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_bench import Subject
from edgeembed_bench.energy import Energy, EnergyWindow, IdlePower
from edgeembed_bench.machine import Load, Machine
from edgeembed_bench.meters import Reading
from edgeembed_bench.model_info import ModelInfo
from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.results import ProcessRun, SubjectResult
from edgeembed_bench.sizes import Size, SizedFile
from edgeembed_bench.worker_client import Start
from edgeembed_bench.workload import BenchmarkSettings, TextInfo

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

def steady(texts):
    time.sleep(0.25 * len(texts))
    return embed(texts)

def as_long(texts):
    return [[0.0] * (1 + len(text)) for text in texts]

def threads(texts):
    return [[0.0] * int(os.environ["OMP_NUM_THREADS"]) for _ in texts]

def batch_size(texts):
    return [[float(len(texts))] for _ in texts]

def one_for_all(texts):
    return [[1.0, 2.0, 3.0]]

def two_lines(texts):
    raise ValueError("first line\\nsecond line")

def words(texts):
    return ["no", "vector"][: len(texts)]

def one_number(texts):
    return 1.0
"""

Stub = Callable[..., Subject]


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """Return a factory of subjects that call a function of a trivial module."""
    (tmp_path / "trivial.py").write_text(_FUNCTIONS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def made(name: str = "stub", function: str = "embed") -> Subject:
        return Subject(name, "function", f"trivial:{function}")

    return made


# Name, median latency in milliseconds, size in megabytes and score of each subject of a report.
_SUBJECTS = [
    ("teacher", 6.0, 90.9, 72.5),
    ("student", 0.5, 7.4, 69.3),
    ("student-int4", 0.42, 4.1, 66.0),
    ("model2vec potion-base-8M", 0.09, 30.2, 58.1),
    ("all-MiniLM-L6-v2 int8 (ONNX Runtime)", 3.1, 22.9, 71.9),
    ("fastembed bge-small-en-v1.5", 5.2, 67.0, 73.4),
    ("random words", 0.05, 1.2, 41.0),
]
NO_COUNTER = "no RAPL counter on this machine (/sys/class/powercap is absent)"


@pytest.fixture(scope="session")
def make_report() -> Callable[..., BenchmarkReport]:
    """Return a factory of reports of some subjects, with or without optional measurements."""
    return _report


@pytest.fixture(scope="session")
def report(make_report: Callable[..., BenchmarkReport]) -> BenchmarkReport:
    """A teacher and its student with all measurements."""
    return make_report(2)


@pytest.fixture(scope="session")
def wide_report(make_report: Callable[..., BenchmarkReport]) -> BenchmarkReport:
    """Seven subjects with all measurements."""
    return make_report(7)


@pytest.fixture(scope="session")
def bare_report(make_report: Callable[..., BenchmarkReport]) -> BenchmarkReport:
    """A teacher and its student in three processes: no energy, quality, sweep, batches, or parts."""
    return make_report(2, processes=3, bare=True)


def _report(
    subjects: int, *, processes: int = 8, bare: bool = False, names: tuple[str, ...] = (), **changes: Any
) -> BenchmarkReport:
    draw = np.random.default_rng(5)
    lengths = () if bare else (8, 16, 32, 64, 128)
    whole = [
        _subject(name, like, processes=processes, lengths=lengths, bare=bare, draw=draw)
        for name, like in zip(names or [like[0] for like in _SUBJECTS[:subjects]], _SUBJECTS, strict=False)
    ]
    settings = BenchmarkSettings(
        runs=processes * 120,
        processes=processes,
        warmup=20,
        block=10,
        settle_ms=10.0,
        batches=0 if bare else processes * 4,
        batch_size=32,
        lengths=lengths,
        sweep_runs=processes * 9,
        threads=1,
        seed=0,
    )
    texts = TextInfo("STS-B test", 500, "5f" * 32, 57.3, whole[0].name)
    machine = Machine(
        cpu="AMD EPYC 9654 96-Core Processor",
        flags=("avx2", "avx512_vnni", "avx512f", "fpu"),
        governor=None,
        cores=8,
        available_cores=2,
        ram_bytes=16 * 2**30,
        system="Linux-6.1.0-x86_64-with-glibc2.36",
        python="3.11.2",
        versions={"edgeembed": "0.1.0", "numpy": "2.4.0", "scipy": None},
    )
    quiet = Load(0.1, 0.0, None)
    report = BenchmarkReport(
        "2026-11-21T18:30:00+00:00", machine, quiet, (1,), settings, texts, whole[0].name, tuple(whole)
    )
    return replace(report, **changes)


def _subject(
    name: str,
    like: tuple[str, float, float, float],
    *,
    processes: int,
    lengths: tuple[int, ...],
    bare: bool,
    draw: np.random.Generator,
) -> SubjectResult:
    _, ms, megabytes, score = like
    info = ModelInfo(
        dimension=384,
        python="3.11.2",
        versions={"onnxruntime": "1.24.1", "tokenizers": "0.22.1"},
        vocabulary_size=30522,
        parameters=round(megabytes * 0.25e6),
        embedding_parameters=round(megabytes * 0.12e6),
        installed_bytes=None if bare else {"numpy": 60_000_000, "onnxruntime": 44_000_000},
    )
    size = Size(
        (
            SizedFile("onnx/model.onnx", round(megabytes * 0.9e6), round(megabytes * 0.75e6), "ab" * 32),
            SizedFile("tokenizer.json", round(megabytes * 0.1e6), round(megabytes * 0.03e6), "cd" * 32),
        )
    )
    runs = tuple(_process(ms, lengths=lengths, bare=bare, draw=draw) for _ in range(processes))
    return SubjectResult(
        subject=Subject(name, "bundle", f"models/{name}", note="made up"),
        info=info,
        size=size,
        discarded_start=runs[0].start,
        processes=runs,
        energy=Energy(None, None, (), NO_COUNTER) if bare else _energy(ms),
        quality={} if bare else {"STS-B Spearman": score, "SciFact nDCG@10": score - 12},
    )


def _process(ms: float, *, lengths: tuple[int, ...], bare: bool, draw: np.random.Generator) -> ProcessRun:
    def times(median: float, count: int, scatter: float = 0.25) -> tuple[float, ...]:
        return tuple(median * draw.lognormal(0, scatter, count))

    scale = ms * draw.lognormal(0, 0.01)
    lengths_alike = np.random.default_rng(9).lognormal(0, 0.25, 120)  # the texts are the same for all subjects
    latency = tuple(lengths_alike * times(scale, 120, 0.03))
    return ProcessRun(
        start=Start(
            18 + draw.random(),
            240 + 9 * draw.random(),
            30 * ms,
            1.7 * ms,
            None if bare else round(7e7 + 4e6 * ms),
            None if bare else round(8e7 + 5e6 * ms),
        ),
        latency_ms=latency,
        warmup_ms=times(2 * ms, 26),
        cpu_s=sum(latency) / 1e3 * 1.2,
        parts_ms={} if bare else {"encode": times(scale, 40), "tokenize": times(0.03, 40), "run": times(ms * 0.9, 40)},
        batches_ms=() if bare else times(ms * 20, 4, 0.03),
        sweep_ms=tuple(times(ms * length / 16, 9, 0.08) for length in lengths),
        sweep_tokens=lengths,
        timer_ms=0.0002,
        resident_bytes=None if bare else round(8e7 + 4e6 * ms),
        peak_bytes=None if bare else round(9e7 + 5e6 * ms),
    )


def _energy(ms: float) -> Energy:
    idle = Reading(20.0, 2.0, {"package": 18.0, "DRAM": 2.0}, None)
    windows = tuple(
        EnergyWindow(100, Reading(joules, ms / 10, {"package": joules * 0.9, "DRAM": joules * 0.1}, None))
        for joules in (ms * 2.4, ms * 2.5, ms * 2.7)
    )
    return Energy("RAPL package + DRAM", IdlePower(idle, idle), windows, None)
