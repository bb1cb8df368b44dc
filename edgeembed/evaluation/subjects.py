"""Score the subjects of a benchmark, each in a process of its own."""

from collections.abc import Sequence

from edgeembed_bench import Subject, WorkerEncoder, start_worker, this_machine
from edgeembed_runtime import Bundle
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.asymmetric import AsymmetricRetrieval
from edgeembed.evaluation.suite import Task, score_tasks
from edgeembed.progress import Reporter


def check_scorable(subjects: Sequence[Subject], tasks: Sequence[Task]) -> None:
    """Raise InputError if a classifier would be scored by similarity.

    Args:
        subjects: The subjects to score.
        tasks: The tasks.
    """
    for subject in subjects if tasks else ():
        if subject.adapter == "bundle" and subject.argument and Bundle.open(subject.argument).is_classifier:
            raise InputError(
                f"{subject.name} is a classifier, which sts and retrieval do not score; expected encoders, or its name "
                "in unscored"
            )


def score_subjects(
    subjects: Sequence[Subject], tasks: Sequence[Task], reporter: Reporter
) -> dict[str, dict[str, float]]:
    """Return the scores by task and subject.

    A subject has no score on a task whose documents another model encodes in another dimension.

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
            suited = [
                task
                for task in tasks
                if not isinstance(task, AsymmetricRetrieval) or task.documents_by.dimension == worker.dimension
            ]
            for score in score_tasks(subject.name, WorkerEncoder(worker), suited, reporter):
                scores.setdefault(f"{score.task} ({score.metric})", {})[subject.name] = score.value
    return scores
