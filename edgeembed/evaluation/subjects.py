"""Score the subjects of a benchmark, each in a process of its own."""

from collections.abc import Sequence

from edgeembed_bench import Subject, WorkerEncoder, start_worker, this_machine
from edgeembed_runtime import Bundle
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.evaluate import score_data
from edgeembed.evaluation.task import EvaluationTask
from edgeembed.progress import Reporter


def check_scorable(subjects: Sequence[Subject], tasks: Sequence[EvaluationTask]) -> None:
    """Raise InputError if a classifier would be scored by similarity.

    Args:
        subjects: The subjects to score.
        tasks: The tasks.
    """
    for subject in subjects if tasks else ():
        if subject.adapter == "bundle" and subject.argument and Bundle.open(subject.argument).is_classifier:
            raise InputError(
                f"{subject.name} is a classifier, which tasks of encoders do not score; expected encoders, or its name "
                "in unscored"
            )


def score_subjects(
    subjects: Sequence[Subject], tasks: Sequence[EvaluationTask], reporter: Reporter
) -> dict[str, dict[str, float]]:
    """Return the scores by data set and subject.

    A subject has no score on a data set that its dimension does not suit, see `EvaluationTask.suits`.

    Args:
        subjects: The subjects.
        tasks: The tasks.
        reporter: Receives the progress.

    Raises:
        CheckError: If a process fails, or embeddings cannot be scored.
    """
    scores: dict[str, dict[str, float]] = {}
    if not tasks:
        return scores
    threads = this_machine().available_cores
    for subject in subjects:
        with start_worker(subject, "a text", threads=threads) as worker:
            encoder = WorkerEncoder(worker)
            found = [
                score
                for task in tasks
                for data in task.sets
                if task.suits(data, worker.dimension)
                for score in score_data(subject.name, encoder, task, data, reporter)
            ]
        for score in found:
            scores.setdefault(f"{score.task} ({score.metric})", {})[subject.name] = score.value
    return scores
