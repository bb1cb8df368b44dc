"""Benchmark models side by side: latency, memory, size and energy, with evaluation scores beside them."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

from edgeembed_bench import (
    BenchmarkReport,
    BenchmarkSettings,
    Budget,
    Comparison,
    Subject,
    compare_reports,
    find_preset,
    parse_subjects,
    read_report,
)
from edgeembed_bench import benchmark as measure
from edgeembed_bench.machine import check_threads
from edgeembed_bench.presets import PEERS_FOLDER
from edgeembed_bench.workload import docstring_sentences
from edgeembed_runtime import Encoder
from edgeembed_runtime.errors import InputError, MissingExtraError, short_repr

from edgeembed.arguments import check_argument_types, check_path
from edgeembed.corpus import read_corpus
from edgeembed.corpus.inputs import CorpusLike
from edgeembed.evaluation.encoders import encoder_name
from edgeembed.evaluation.subjects import check_scorable, score_subjects
from edgeembed.evaluation.task import EvaluationTask
from edgeembed.models import find_builtin_bundle, find_model
from edgeembed.progress import Reporter, SilentReporter

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# What subjects import that edgeembed does not install.
_LIBRARIES = {"sentence-transformer-onnx": "optimum", "model2vec": "model2vec", "fastembed": "fastembed"}

SubjectLike: TypeAlias = "str | os.PathLike[str] | SentenceTransformer | Encoder"
"""A model by name or folder, or `[NAME=][KIND:]WHAT[@PYTHON]` as on the command line, or a loaded model."""


@check_argument_types
def benchmark(  # noqa: PLR0913  # one parameter per option
    models: SubjectLike | Sequence[SubjectLike] = (),
    *,
    against: SubjectLike | Sequence[SubjectLike] = (),
    preset: str | None = None,
    peers: str | os.PathLike[str] | None = None,
    texts: CorpusLike | None = None,
    runs: int = 1000,
    processes: int = 10,
    threads: int = 1,
    sweep: bool | None = None,
    seed: int = 0,
    tasks: EvaluationTask | Sequence[EvaluationTask] = (),
    unscored: str | Collection[str] = (),
    max_latency_ratio: float | None = None,
    max_size_mb: float | None = None,
    min_quality: float | None = None,
    reporter: Reporter | None = None,
) -> BenchmarkReport:
    """Measure what models cost, side by side: latency, cold start, memory, size and energy.

    Each model runs in fresh processes on the same cores; the models take turns in shuffled order. The limits apply to
    `models`; `report.limit_checks()` says which are exceeded or could not be checked.

    Args:
        models: One or more models: built-in bundles ("mini", "nano", "micro"), folders of bundles, of
            sentence-transformers or of model2vec models, installed packages that carry a model, hub ids, functions
            ("module:function"), or loaded models. `[NAME=][KIND:]WHAT[@PYTHON]` names a model, chooses how it is
            loaded, and the Python interpreter of another environment.
        against: One or more models to compare with. The first is the baseline; without any, the first of `models` is.
        preset: "runtime" adds the built-in models, with limits on cold start, memory and call overhead.
        peers: Folder of the preset's other models, as `make bench-runtime` builds it; None is build/bench-runtime.
        texts: Texts to encode; None takes sentences of Python's docstrings.
        runs: Timed texts per model.
        processes: Fresh processes per model; fewer than 8 allow no significance test.
        threads: Threads per model, at most one for each core that this process may use.
        sweep: Whether to time texts of 4 to 512 tokens as well; None does, unless there is a preset.
        seed: Seed of the order in which models take turns.
        tasks: As for `edgeembed.evaluate`, with scores of which higher is better; they are shown beside the cost. Where
            another model encodes the documents, the cost beside the score is that of a query.
        unscored: Names of models that are not evaluated, such as one of random weights.
        max_latency_ratio: Limit on the latency ratio to the baseline.
        max_size_mb: Limit on the size, in 10^6 bytes.
        min_quality: Limit on the mean score, in percent of the baseline's.
        reporter: Receives the progress; None is silent.

    Returns:
        The report, with all samples.

    Raises:
        InputError: If an argument is wrong, before anything is measured.
        CheckError: If a model does not start, does not answer in time, or its embeddings are not finite.
    """
    reporter = reporter or SilentReporter()
    check_threads(threads)
    if peers is not None and preset is None:
        raise InputError("peers is the folder of a preset's other models; expected a preset as well")
    budget = Budget(max_latency_ratio, max_size_mb, min_quality)
    tasks = [tasks] if isinstance(tasks, EvaluationTask) else tasks
    if min_quality is not None and not tasks:
        raise InputError(f"min_quality is {min_quality:g}, but nothing is scored; expected tasks as well")
    own, others = _as_list("models", models), _as_list("against", against)
    if not own and preset is None:
        raise InputError("no models to benchmark; expected at least one, or a preset")
    if (max_latency_ratio is not None or min_quality is not None) and not others:
        raise InputError("max_latency_ratio and min_quality are relative to a baseline; expected against as well")
    chosen = None if preset is None else find_preset(preset, runs=runs, peers=Path(peers or PEERS_FOLDER))
    settings = chosen.settings if chosen else BenchmarkSettings(runs=runs)
    settings = _with_options(settings, sweep, processes=processes, threads=threads, seed=seed)
    with _open_subjects([*own, *others]) as opened:
        limited, compared = opened[: len(own)], opened[len(own) :]
        baseline = compared[0].name if compared else None
        if chosen is not None:
            budget = _override(chosen.budget, budget)
            limited, compared = [*chosen.subjects, *limited], [*compared, *chosen.peers]
        budget.check_subjects(limited)
        subjects = [*limited, *compared]
        names = [subject.name for subject in subjects]
        skipped = {unscored} if isinstance(unscored, str) else {*unscored}
        if not skipped <= {*names}:
            raise InputError(f"unscored names {min(skipped - {*names})}; expected some of: {', '.join(names)}")
        needed = [*(subject.name for subject in limited), *filter(None, [baseline])]
        if budget.min_quality is not None and not skipped.isdisjoint(needed):
            name = next(name for name in needed if name in skipped)
            raise InputError(f"the limit min_quality needs the score of {name}; expected it not to be in unscored")
        check_scorable([subject for subject in subjects if subject.name not in skipped], tasks)
        sentences, source = read_texts(texts)
        reporter.note(f"measuring {', '.join(names)}: {processes} processes each")
        report = measure(
            subjects,
            sentences,
            settings,
            texts_from=source,
            baseline=baseline,
            floor=chosen.floor if chosen else None,
            left_out=chosen.left_out if chosen else None,
        )
        scores = score_subjects([subject for subject in subjects if subject.name not in skipped], tasks, reporter)
    for task, by_name in scores.items():
        report = report.with_quality(task, by_name)
    return report.with_budget(budget, [subject.name for subject in limited])


@check_argument_types
def compare(
    before: str | os.PathLike[str] | BenchmarkReport,
    after: str | os.PathLike[str] | BenchmarkReport,
    *,
    allow_unlike: bool = False,
) -> Comparison:
    """Compare two reports of the benchmark.

    Args:
        before: The first report, or a JSON file that `BenchmarkReport.to_json` or `edgeembed bench --out` wrote.
        after: The second report, likewise.
        allow_unlike: Whether to compare reports of different machines, settings or texts.

    Returns:
        The comparison, with the change of each model that is in both reports.

    Raises:
        InputError: If a file is not a report, no model is in both, or machine, settings or texts differ.
    """
    reports = [
        each if isinstance(each, BenchmarkReport) else read_report(check_path(name, each))
        for name, each in (("before", before), ("after", after))
    ]
    return compare_reports(reports[0], reports[1], allow_unlike=allow_unlike)


def find_subjects(models: Sequence[str | os.PathLike[str]]) -> list[Subject]:
    """Return the subjects of a benchmark by the names that a user gives.

    Args:
        models: Each `[NAME=][KIND:]WHAT[@PYTHON]`, as `edgeembed_bench.parse_subjects` takes it. WHAT may be any name
            that `edgeembed.models.find_model` takes, or the folder of another library's model. A `Path` is a folder.

    Returns:
        The subjects, with unique names.

    Raises:
        InputError: If there is no such model.
    """
    return parse_subjects(
        [model if isinstance(model, str) else str(Path(model).absolute()) for model in models], _folder
    )


def _folder(name: str) -> Path:
    # Folders of other libraries (model2vec, plain ONNX) hold none of the files that find_model expects.
    return find_builtin_bundle(name) or (Path(name) if Path(name).is_dir() else find_model(name))


def _as_list(name: str, models: SubjectLike | Sequence[SubjectLike]) -> list[SubjectLike]:
    found = list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    for model in found:
        if not (isinstance(model, str | os.PathLike | Encoder) or _is_sentence_transformer(model)):
            raise InputError(f"{name} is {short_repr(models)}; expected a model, or a list of models")
    return found


def _is_sentence_transformer(model: object) -> bool:
    """Return whether an object is a SentenceTransformer; the library is not imported for one that cannot be."""
    from torch import nn

    return isinstance(model, nn.Module) and hasattr(model, "save_pretrained") and hasattr(model, "encode")


@contextmanager
def _open_subjects(models: Sequence[SubjectLike]) -> Iterator[list[Subject]]:
    """Yield the subjects of models; those that are loaded are saved to temporary folders, for the worker processes."""
    with TemporaryDirectory(prefix="edgeembed-bench-") as temporary:
        folders: list[str | os.PathLike[str]] = []
        for number, model in enumerate(models):
            if isinstance(model, str | os.PathLike):
                folders.append(model)
            elif isinstance(model, Encoder):
                folders.append(Path(str(model.bundle.path)))
            else:
                folder = Path(temporary) / str(number) / encoder_name(model)
                model.save_pretrained(str(folder), create_model_card=False)
                folders.append(folder)
        subjects = find_subjects(folders)
        for subject in subjects:
            _check_library(subject)
        yield subjects


def _check_library(subject: Subject) -> None:
    """Raise an error if this Python is to run a subject of a library that it lacks."""
    library = _LIBRARIES.get(subject.adapter)
    if library is None or subject.python != sys.executable or importlib.util.find_spec(library) is not None:
        return
    if library == "optimum":
        raise MissingExtraError("optimum-onnx", "optimum")
    raise InputError(
        f"{subject.name} needs {library}, which is not installed; install it, or add @ and the Python of an "
        "environment that has it"
    )


def _with_options(
    settings: BenchmarkSettings, sweep: bool | None, *, processes: int, threads: int, seed: int
) -> BenchmarkSettings:
    if sweep is not None:
        settings = replace(settings, sweep_runs=BenchmarkSettings().sweep_runs if sweep else 0)
    return replace(settings, processes=processes, threads=threads, seed=seed)


def _override(preset: Budget, given: Budget) -> Budget:
    """Return the limits of a preset, replaced where the caller sets a limit."""
    return replace(preset, **{name: limit for name, limit in asdict(given).items() if limit is not None})


def read_texts(texts: CorpusLike | None) -> tuple[list[str], str]:
    """Return the texts to encode, and where they come from.

    Args:
        texts: The texts, as for `benchmark`; None takes sentences of Python's docstrings.

    Raises:
        InputError: If they cannot be read.
    """
    if texts is None:
        return docstring_sentences(), "Python's docstrings"
    if isinstance(texts, str | os.PathLike):
        name = os.fspath(texts)
        return read_corpus(name), "stdin" if name == "-" else name
    return read_corpus(texts), "the caller"
