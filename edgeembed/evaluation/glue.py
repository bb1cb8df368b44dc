"""GLUE on frozen vectors: a logistic regression learns a task from DiffCat features, and is measured as GLUE does."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.encoders import SentenceEncoder, vectors
from edgeembed.evaluation.scores import Score
from edgeembed.tasks.examples import Examples, Task, read_task
from edgeembed.tasks.measures import Measure, measures

PREFIX = "GLUE "
TASKS: dict[str, tuple[str, Measure]] = {
    "CoLA": ("cola", "matthews"),
    "SST-2": ("sst2", "accuracy"),
    "MRPC": ("mrpc", "accuracy-f1"),
    "STS-B": ("stsb", "pearson-spearman"),
    "QNLI": ("qnli", "accuracy"),
    "RTE": ("rte", "accuracy"),
}
"""The name that a task's files begin with, and its measure, by what GLUE calls the task."""
_TRAIN, _DEV = ("_train.tsv", "_train_full.tsv"), ("_dev.tsv", "_test.tsv")


@dataclass(frozen=True)
class GlueTask:
    """A task of GLUE.

    Attributes:
        name: `GLUE ` and what GLUE calls it.
        measure: GLUE's measure.
        task: Its parts.
    """

    name: str
    measure: Measure
    task: Task


def read_glue(folder: Path) -> list[GlueTask]:
    """Read those of GLUE's tasks that a folder has both parts of.

    Args:
        folder: Holds `cola_train.tsv`, `cola_dev.tsv` and so on, with `sst2`, `mrpc`, `stsb`, `qnli` and `rte` for
            `cola`, as `read_task` takes them; `_train_full` stands in for `_train`, and `_test` for `_dev`, as in the
            official parts of MRPC.

    Raises:
        InputError: If it holds none, or a file cannot be used.
    """
    found = []
    for name, (stem, measure) in TASKS.items():
        parts = [_first(folder, stem, endings) for endings in (_TRAIN, _DEV)]
        if parts[0] and parts[1]:
            found.append(GlueTask(f"{PREFIX}{name}", measure, read_task(parts[0], parts[1])))
    if not found:
        raise InputError(
            f"{folder} holds none of GLUE's tasks; expected cola_train.tsv and cola_dev.tsv, or those of "
            f"{', '.join(stem for stem, _ in list(TASKS.values())[1:])}"
        )
    return found


def score_glue(encoder: SentenceEncoder, glue: GlueTask) -> Score:
    """Score an encoder by what a logistic regression on its vectors says of a task's development part.

    Features are a text's vector; of two texts both and their absolute difference ("Cross-architecture distillation
    using bidirectional CMOW embeddings", section 2.3: DiffCat). The classifier's regularisation is chosen by ten
    folds of the training part.

    Args:
        encoder: What to score; it is not trained.
        glue: The task.

    Returns:
        GLUE's measure x100; its other measures among the details.

    Raises:
        CheckError: If the encoder gives vectors that are not finite.
    """
    from edgeembed.evaluation.classification import Labelled, predictions

    task = glue.task
    train, dev = (_features(encoder, part) for part in (task.train, task.dev))
    labels = task.train.classes.astype(np.str_)
    found = predictions(Labelled(train, labels), dev).astype(np.int64)
    given = measures(task, found)
    details = {f"{name} x100": value for name, value in given.items() if name != glue.measure}
    return Score(glue.name, f"{glue.measure} x100", given[glue.measure], len(task.dev.first), details)


def _features(encoder: SentenceEncoder, examples: Examples) -> npt.NDArray[np.float32]:
    first = vectors(encoder.encode, list(examples.first))
    if not examples.second:
        return first
    second = vectors(encoder.encode, list(examples.second))
    return np.concatenate([first, np.abs(first - second), second], axis=1)


def _first(folder: Path, stem: str, endings: Sequence[str]) -> Path | None:
    return next((file for ending in endings if (file := folder / f"{stem}{ending}").exists()), None)
