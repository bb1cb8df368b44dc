"""GLUE on frozen embeddings: logistic regression on DiffCat features, with GLUE's metrics (Wang et al. 2019)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from edgeembed_bench.render.tables import MISSING, Table, fixed
from edgeembed_runtime.errors import InputError

from edgeembed.classification.examples import ClassificationData, Examples, read_classification_data
from edgeembed.evaluation.encoders import SentenceEncoder, encode_texts
from edgeembed.evaluation.intervals import scaled, share_interval
from edgeembed.evaluation.layout import PARAMETERS, PARAMETERS_LEGEND, Cell, table
from edgeembed.evaluation.model_evaluation import ModelEvaluation, Rows
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike

if TYPE_CHECKING:
    from edgeembed.classification.training import Metric

PREFIX = "GLUE "
GLUE_TASKS: "dict[str, tuple[str, Metric]]" = {
    "CoLA": ("cola", "matthews"),
    "SST-2": ("sst2", "accuracy"),
    "MRPC": ("mrpc", "accuracy-f1"),
    "STS-B": ("stsb", "pearson-spearman"),
    "QQP": ("qqp", "accuracy-f1"),
    "MNLI": ("mnli", "accuracy"),
    "QNLI": ("qnli", "accuracy"),
    "RTE": ("rte", "accuracy"),
    "WNLI": ("wnli", "accuracy"),
}
"""The prefix of a task's files and its metric, by GLUE's name of the task."""
_TRAIN_SUFFIXES, _DEV_SUFFIXES = ("_train.tsv", "_train_full.tsv"), ("_dev.tsv", "_test.tsv")


@dataclass(frozen=True)
class GlueTask:
    """A task of GLUE.

    Attributes:
        name: "GLUE " and GLUE's name of the task.
        metric: GLUE's metric for the task.
        data: Its training and development splits.
    """

    name: str
    metric: "Metric"
    data: ClassificationData


@TASKS.register("glue")
class Glue(EvaluationTask):
    """GLUE's tasks, by a logistic regression on frozen embeddings.

    Args:
        sources: Folders, as `read_glue` takes them.

    Raises:
        InputError: If one cannot be read.
    """

    metavar = "DIR"
    help = (
        "GLUE's tasks, by logistic regression on frozen embeddings: a folder with cola_train.tsv and cola_dev.tsv, or "
        "those of sst2, mrpc, stsb, qqp, mnli, qnli, rte and wnli. GLUE's metrics (CMOW, table 4)."
    )

    def __init__(self, *sources: PathLike) -> None:
        self.sets = [task for each in self.check_sources(sources) for task in read_glue(Path(each))]

    def score(self, encoder: SentenceEncoder, data: GlueTask) -> list[Score]:
        """Score an encoder, see `score_glue`."""
        return [score_glue(encoder, data)]

    @classmethod
    def tables(cls, rows: Rows) -> list[Table]:
        """Return table 4 of CMOW, but of encoders that are not fine-tuned."""
        columns = {name: _cell(f"{PREFIX}{name}") for name in GLUE_TASKS}
        legends = [
            "x100, of a logistic regression on frozen embeddings; of pairs both and their absolute difference",
            ", ".join(f"{name}: {metric}" for name, (_, metric) in GLUE_TASKS.items()),
        ]
        return [table("GLUE", rows, columns | PARAMETERS, [*legends, PARAMETERS_LEGEND])]


def read_glue(folder: Path) -> list[GlueTask]:
    """Read the GLUE tasks of which a folder contains both splits.

    Args:
        folder: A folder with `cola_train.tsv`, `cola_dev.tsv` and so on, in the format of `read_classification_data`;
            the prefixes are those of `GLUE_TASKS`. `_train_full` may replace `_train`, and `_test` may replace `_dev`,
            as in the official splits of MRPC.

    Raises:
        InputError: If the folder contains none of the tasks, or a file cannot be read.
    """
    tasks = []
    for name, (stem, metric) in GLUE_TASKS.items():
        train, dev = (_first_file(folder, stem, suffixes) for suffixes in (_TRAIN_SUFFIXES, _DEV_SUFFIXES))
        if train and dev:
            tasks.append(GlueTask(f"{PREFIX}{name}", metric, read_classification_data(train, dev)))
    if not tasks:
        raise InputError(
            f"{folder} contains none of GLUE's tasks; expected cola_train.tsv and cola_dev.tsv, or those of "
            f"{', '.join(stem for stem, _ in list(GLUE_TASKS.values())[1:])}"
        )
    return tasks


def score_glue(encoder: SentenceEncoder, task: GlueTask) -> Score:
    """Compute GLUE's metric on the development split, of a logistic regression on frozen embeddings.

    The features are the embedding of a text; of a pair both embeddings and their absolute difference (DiffCat,
    "Cross-architecture distillation using bidirectional CMOW embeddings", section 2.3). Regularization is selected by
    ten folds of the training split.

    Args:
        encoder: The encoder, which is not trained.
        task: The task.

    Returns:
        GLUE's metric x100; details: the other metrics.

    Raises:
        CheckError: If embeddings are not finite.
    """
    from edgeembed.classification.training import compute_metrics
    from edgeembed.evaluation.logistic_regression import LabeledFeatures, predict_labels

    data = task.data
    train, dev = (_features(encoder, split) for split in (data.train, data.dev))
    labels = data.train.class_ids.astype(np.str_)
    predicted = predict_labels(LabeledFeatures(train, labels), dev).astype(np.int64)
    metrics = compute_metrics(data, predicted)
    details = {f"{name} x100": value for name, value in metrics.items() if name != task.metric}
    items, interval = len(data.dev), None
    if task.metric == "accuracy":
        interval = scaled(share_interval(round(metrics["accuracy"] * items / 100), items))
    return Score(task.name, f"{task.metric} x100", metrics[task.metric], items, details, interval=interval)


def _features(encoder: SentenceEncoder, examples: Examples) -> npt.NDArray[np.float32]:
    first = encode_texts(encoder.encode, list(examples.first))
    if not examples.second:
        return first
    second = encode_texts(encoder.encode, list(examples.second))
    return np.concatenate([first, np.abs(first - second), second], axis=1)


def _first_file(folder: Path, stem: str, suffixes: Sequence[str]) -> Path | None:
    return next((file for suffix in suffixes if (file := folder / f"{stem}{suffix}").exists()), None)


def _cell(task: str) -> Cell:
    def cell(model: ModelEvaluation) -> str:
        score = next((score for score in model.scores if score.task == task), None)
        return fixed(score.value, 1) + score.margin(1) if score else MISSING

    return cell
