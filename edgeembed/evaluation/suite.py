"""Several tasks in one go, for one encoder or for two side by side."""

from collections.abc import Sequence
from pathlib import Path

from edgeembed.evaluation.encoders import SentenceEncoder, open_encoder
from edgeembed.evaluation.results import Evaluation, Score
from edgeembed.evaluation.retrieval import RetrievalSet, read_retrieval, score_retrieval
from edgeembed.evaluation.sts import SentencePairs, read_sts, score_sts
from edgeembed.progress import Reporter, SilentReporter

Task = SentencePairs | RetrievalSet


def evaluate(
    model: str,
    *,
    sts: Sequence[Path] = (),
    retrieval: Sequence[Path] = (),
    against: str | None = None,
    reporter: Reporter | None = None,
) -> Evaluation:
    """Score a model, and a reference beside it.

    Args:
        model: A bundle's folder, or a model by any name that `load_model` takes.
        sts: Files of scored sentence pairs, as `read_sts` takes them.
        retrieval: Retrieval folders, as `read_retrieval` takes them.
        against: The reference, named like `model`.
        reporter: Hears of each task.

    Returns:
        The scores, in float32 arithmetic.

    Raises:
        InputError: If a file or a model cannot be used; files are read before a model is loaded.
        CheckError: If an encoder's vectors cannot be scored.
    """
    tasks = read_tasks(sts, retrieval)
    reporter = reporter or SilentReporter()
    scores = score_tasks(model, open_encoder(model), tasks, reporter)
    if against is None:
        return Evaluation(model, scores)
    return Evaluation(model, scores, against, score_tasks(against, open_encoder(against), tasks, reporter))


def read_tasks(sts: Sequence[Path], retrieval: Sequence[Path]) -> list[Task]:
    """Read all that is to be scored.

    Args:
        sts: Files of scored sentence pairs, as `read_sts` takes them.
        retrieval: Retrieval folders, as `read_retrieval` takes them.

    Raises:
        InputError: If one cannot be used.
    """
    return [*map(read_sts, sts), *map(read_retrieval, retrieval)]


def score_tasks(name: str, encoder: SentenceEncoder, tasks: Sequence[Task], reporter: Reporter) -> tuple[Score, ...]:
    """Score an encoder on tasks, in their order.

    Args:
        name: What the reporter calls it.
        encoder: What to score.
        tasks: What `read_tasks` gave.
        reporter: Hears of each task.

    Raises:
        CheckError: If the encoder's vectors cannot be scored.
    """
    scores: list[Score] = []
    for task in tasks:
        with reporter.step(f"{name} on {task.name}"):
            if isinstance(task, SentencePairs):
                scores.extend(score_sts(encoder, task))
            else:
                scores.append(score_retrieval(encoder, task))
    return tuple(scores)
