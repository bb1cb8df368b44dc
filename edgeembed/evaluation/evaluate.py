"""Evaluate models side by side on one or more tasks."""

import functools
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from edgeembed_bench.model_info import Parameters
from edgeembed_bench.subjects import unique_names
from edgeembed_runtime.errors import InputError

from edgeembed.arguments import check_argument_types, check_path
from edgeembed.evaluation.encoders import (
    EncoderLike,
    SentenceEncoder,
    count_parameters,
    encoder_fingerprint,
    encoder_name,
    find_encoder,
)
from edgeembed.evaluation.model_evaluation import ModelEvaluation
from edgeembed.evaluation.report import EvaluationReport, read_evaluation
from edgeembed.evaluation.score_cache import ScoreCache, default_folder
from edgeembed.evaluation.scores import Score, SuiteScores, suite_scores
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike, kind_of
from edgeembed.progress import Reporter, SilentReporter


@check_argument_types
def evaluate(
    models: EncoderLike | Sequence[EncoderLike],
    tasks: EvaluationTask | Sequence[EvaluationTask],
    *,
    against: EncoderLike | None = None,
    add_to: PathLike | None = None,
    cache: PathLike | bool = True,
    reporter: Reporter | None = None,
) -> EvaluationReport:
    """Evaluate models side by side on one or more tasks.

    A task is an object of a class that says how files are read, scored and laid out, such as
    `edgeembed.evaluation.tasks.sts.STS("stsb.tsv")`; those of a plugin are used in the same way. It reads its files
    when it is made, so no model is loaded for files that cannot be read.

    Args:
        models: One or more models: built-in bundles ("mini", "nano", "micro"), folders of bundles or models, installed
            packages that carry a model, hub ids, or loaded encoders such as a `SentenceTransformer` or an
            `edgeembed_runtime.Encoder`.
        tasks: One or more tasks; scores and tables are in their order.
        against: The reference model, usually the teacher.
        add_to: JSON file of an earlier report on the same tasks, with the same reference, which is not scored again.
            The models are added to those of this report, and replace those of the same name.
        cache: Folder in which the scores of `against` are kept, so that it is scored once for all students; True is
            `edgeembed/evaluation` in the user's cache folder, False keeps nothing. Scores are reused for the same
            files of the model, the same data, and the same code and libraries; a loaded encoder has none.
        reporter: Receives the progress, and each score when it is there; None is silent.

    Returns:
        The report: one evaluation per model, in order, after those of `add_to`. A model that is given twice is scored
        once.

    Raises:
        InputError: If there are no models or tasks, or an argument is wrong, before a model is loaded; if the tasks of
            `add_to` differ, after the first model was scored.
        CheckError: If a model's embeddings cannot be scored.
    """
    reporter = reporter or SilentReporter()
    chosen = _as_tasks(tasks)
    encoders = [*([] if against is None else [against]), *_as_models(models)]
    names = _unique_names(encoders)
    reference = None if against is None else names[0]
    earlier = None if add_to is None else _read_earlier(add_to, reference, chosen)
    loaders = {name: find_encoder(encoder) for name, encoder in zip(names, encoders, strict=True)}

    results: dict[str, _Result] = {}
    if earlier is not None and reference is not None:
        known = earlier.models[0]
        results[reference] = _Result(known.reference_parameters, known.reference_scores)
    scored: dict[str, list[list[Score]]] = {}
    for name in [each for each in loaders if each not in results]:
        kept = _open_cache(cache, against) if name == reference else None
        results[name], scored[name] = _score_model(name, loaders[name], chosen, kept, reporter)
        if earlier is not None:
            earlier.check_tasks(name, results[name].scores)
    for number, task in enumerate(chosen):
        for name, scores in task.complete({name: each[number] for name, each in scored.items()}).items():
            scored[name][number] = list(scores)
    results |= {name: replace(results[name], scores=_flat(each)) for name, each in scored.items()}
    evaluations = [
        _evaluation(name, results[name], reference, None if reference is None else results[reference])
        for name in (names if reference is None else names[1:])
    ]
    unchanged = [] if earlier is None else [each for each in earlier if each.model not in names]
    return EvaluationReport((*unchanged, *evaluations))


@dataclass(frozen=True)
class _Result:
    """What is known of a model after it was scored."""

    parameters: Parameters | None
    scores: tuple[Score, ...]

    @property
    def suites(self) -> dict[str, SuiteScores]:
        """The scores on published suites, by kind of task."""
        by_kind: dict[str, list[Score]] = {}
        for score in self.scores:
            by_kind.setdefault(score.kind, []).append(score)
        found = {kind: suite_scores(each, TASKS[kind].suite) for kind, each in by_kind.items() if kind in TASKS}
        return {kind: scores for kind, scores in found.items() if scores is not None}


def _evaluation(name: str, result: _Result, reference: str | None, expected: _Result | None) -> ModelEvaluation:
    if expected is None:
        return ModelEvaluation(name, result.scores, parameters=result.parameters, suites=result.suites)
    return ModelEvaluation(
        name,
        result.scores,
        reference,
        expected.scores,
        result.parameters,
        expected.parameters,
        result.suites,
        expected.suites,
    )


def _as_tasks(tasks: EvaluationTask | Sequence[EvaluationTask]) -> list[EvaluationTask]:
    found = list(tasks) if isinstance(tasks, Sequence) and not isinstance(tasks, str) else [tasks]
    if not found:
        raise InputError(f"no tasks to evaluate on; expected at least one of: {', '.join(TASKS)}")
    for task in found:
        kind_of(task)
    return found


def _read_earlier(file: PathLike, reference: str | None, tasks: Sequence[EvaluationTask]) -> EvaluationReport:
    if timed := [kind_of(task) for task in tasks if task.measures_time]:
        raise InputError(f"add_to is given with {timed[0]}, whose times compare only within a run; omit one")
    report = read_evaluation(os.fspath(file))
    if (found := report.models[0].reference) != reference:
        raise InputError(f"{file} has the reference {found}, but against is {reference}; expected the same one")
    return report


def _as_models(models: EncoderLike | Sequence[EncoderLike]) -> list[EncoderLike]:
    found = list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    if not found:
        raise InputError("no models to evaluate; expected at least one")
    return found


def _unique_names(encoders: Sequence[EncoderLike]) -> list[str]:
    """Return the name of each encoder; the same object has the same name, different objects have different names."""
    keys = [each if isinstance(each, str | os.PathLike) else id(each) for each in encoders]
    short = {key: encoder_name(encoder) for key, encoder in zip(keys, encoders, strict=True)}
    unique = dict(zip(short, unique_names([*short.values()], [*short.values()]), strict=True))
    return [unique[key] for key in keys]


def _open_cache(cache: PathLike | bool, reference: EncoderLike | None) -> ScoreCache | None:
    if cache is False or reference is None or (fingerprint := encoder_fingerprint(reference)) is None:
        return None
    return ScoreCache(default_folder() if cache is True else check_path("cache", cache), fingerprint)


def _score_model(
    name: str,
    load: Callable[[], SentenceEncoder],
    tasks: Sequence[EvaluationTask],
    cache: ScoreCache | None,
    reporter: Reporter,
) -> tuple[_Result, list[list[Score]]]:
    """Return the result of a model, and its scores by task; it is loaded if not all of them are in the cache."""
    encoder = functools.cache(load)
    by_task = []
    for task in tasks:
        kept = None if task.measures_time else cache
        by_task.append([score for data in task.sets for score in _score(name, encoder, task, data, kept, reporter)])
    parameters = cache.read_parameters() if cache is not None else None
    if parameters is None:
        parameters = count_parameters(encoder())
        if cache is not None and parameters is not None:
            with suppress(OSError):
                cache.write_parameters(parameters)
    return _Result(parameters, _flat(by_task)), by_task


def _score(
    name: str,
    encoder: Callable[[], SentenceEncoder],
    task: EvaluationTask,
    data: Any,
    cache: ScoreCache | None,
    reporter: Reporter,
) -> Sequence[Score]:
    """Return the scores on one data set, and report them."""
    scores = None if cache is None else cache.read(task, data)
    if scores is not None:
        for score in scores:
            reporter.note(f"{name}, {score}, as scored before")
        return scores
    scores = score_data(name, encoder(), task, data, reporter)
    if cache is not None:
        with suppress(OSError):  # a cache that cannot be written is not needed
            cache.write(task, data, scores)
    return scores


def score_data(
    name: str, encoder: SentenceEncoder, task: EvaluationTask, data: Any, reporter: Reporter
) -> tuple[Score, ...]:
    """Score an encoder on one data set of a task, and report each score.

    Args:
        name: Name of the encoder, for progress reports.
        encoder: The encoder.
        task: The task.
        data: One of its data sets.
        reporter: Receives the progress and the scores.

    Raises:
        CheckError: If embeddings cannot be scored.
    """
    with reporter.step(f"{name} on {data.name}"):
        scores = tuple(replace(score, kind=kind_of(task)) for score in task.score(encoder, data))
    for score in scores:
        reporter.note(f"{name}, {score}")
    return scores


def _flat(by_task: Sequence[Sequence[Score]]) -> tuple[Score, ...]:
    return tuple(score for scores in by_task for score in scores)
