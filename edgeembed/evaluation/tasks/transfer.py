"""Transfer tasks of SentEval: accuracy of a logistic regression on frozen embeddings (Conneau and Kiela 2018)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError

from edgeembed.corpus.tables import read_tsv
from edgeembed.evaluation.encoders import SentenceEncoder, encode_texts
from edgeembed.evaluation.intervals import scaled, share_interval
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike

if TYPE_CHECKING:
    from edgeembed.evaluation.logistic_regression import ClassifierResult, LabeledFeatures

METRIC = "accuracy x100"
F1 = "F1 x100"
TRANSFER_TASKS = {
    "MR": ("mr",),
    "CR": ("cr",),
    "SUBJ": ("subj",),
    "MPQA": ("mpqa",),
    "SST-2": ("sst2",),
    "TREC": ("trec",),
    "MRPC": ("mrpc", "mrpc_tok"),
}
"""File names of each task by its name in papers, in the order of DistilCSE's table 5."""
_NAMES = {stem: name for name, stems in TRANSFER_TASKS.items() for stem in stems}
_SPLITS = ("train", "dev", "test")
# Examples needed of each label: for ten folds; and for ten folds within each training set of ten folds.
_MIN_PER_LABEL, _MIN_PER_LABEL_NESTED = 10, 12
_EXPECTED = "expected TSV with the columns label, and text or sentence1 and sentence2"


@dataclass(frozen=True)
class TransferExamples:
    """Texts or pairs of texts with their labels.

    Attributes:
        first: The texts, or the first text of each pair.
        second: The second text of each pair; empty for single texts.
        labels: The labels.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class TransferSet:
    """A classification task.

    Attributes:
        name: The task's name in papers; otherwise the file's name with its folder's, without the split.
        train: The training split; all examples if there is no test split.
        dev: The development split, on which regularization is selected; None selects it by cross-validation.
        test: The test split; None tests by cross-validation.
    """

    name: str
    train: TransferExamples
    dev: TransferExamples | None = None
    test: TransferExamples | None = None

    @property
    def splits(self) -> tuple[TransferExamples, ...]:
        """The splits that exist."""
        return tuple(split for split in (self.train, self.dev, self.test) if split is not None)


@TASKS.register("transfer")
class Transfer(EvaluationTask):
    """Classification of texts by a logistic regression on frozen embeddings: SentEval's tasks, or your own.

    Args:
        sources: Folders and files, as `read_transfer` takes them.

    Raises:
        InputError: If one cannot be read, or a classifier cannot be trained on it.
    """

    metavar = "DIR|FILE"
    help = (
        "Labeled texts, or a folder of SentEval's tasks: mr.tsv, cr.tsv, subj.tsv, mpqa.tsv, sst2_train.tsv, "
        "trec_train.tsv, mrpc_train.tsv, as far as it has them. A TSV has label, and text or sentence1 and sentence2. "
        "NAME_train.tsv needs NAME_test.tsv beside it; NAME_dev.tsv is optional. Accuracy of a logistic regression on "
        "frozen embeddings."
    )
    suite = tuple(TRANSFER_TASKS)
    title = "Transfer"
    legend = (
        "accuracy x100 of a logistic regression on frozen embeddings, by SentEval's protocol; tasks without a test "
        "split are cross-validated"
    )

    def __init__(self, *sources: PathLike) -> None:
        self.sets = read_transfer([Path(each) for each in self.check_sources(sources)])

    def score(self, encoder: SentenceEncoder, data: TransferSet) -> list[Score]:
        """Score an encoder, see `score_transfer`."""
        return [score_transfer(encoder, data)]


def read_transfer(paths: Sequence[Path]) -> list[TransferSet]:
    """Read classification tasks.

    Args:
        paths: Folders and files. A folder contains some of the seven tasks: `mr.tsv`, `cr.tsv`, `subj.tsv`, `mpqa.tsv`,
            `sst2_train.tsv`, `sst2_dev.tsv`, `sst2_test.tsv`, `trec_train.tsv`, `trec_test.tsv`, `mrpc_train.tsv` and
            `mrpc_test.tsv`, the last two also as `mrpc_tok`. A file is `NAME.tsv`, a task without splits, or one of
            `NAME_train.tsv`, `NAME_dev.tsv` and `NAME_test.tsv`, which are then all read. UTF-8, tab-separated, without
            quoting, with the columns `label`, and `text` or `sentence1` and `sentence2`.

    Returns:
        The tasks in the order of `paths`; those of a folder in the order of `TRANSFER_TASKS`.

    Raises:
        InputError: If a file cannot be read, a task lacks a split or has too few examples of a label, a folder contains
            none of the tasks, or a task is given twice.
    """
    tasks: dict[str, TransferSet] = {}
    for path in paths:
        for task in _read_folder(path) if path.is_dir() else [_read_file(path)]:
            if task.name in tasks:
                raise InputError(f"{path}: {task.name} is given twice; expected each task once, by one of its files")
            tasks[task.name] = task
    return list(tasks.values())


def score_transfer(encoder: SentenceEncoder, task: TransferSet) -> Score:
    """Compute the accuracy of a logistic regression on frozen embeddings that are not standardized.

    The features are the embedding u of a text, or |u - v| and u * v of a pair. A task with a test split is trained on
    the training split and tested once; any other is tested by ten-fold cross-validation.

    Args:
        encoder: The encoder.
        task: The task.

    Returns:
        Accuracy x100; details: the accuracy by which C was selected, the smallest and largest selected C, and for pairs
        labeled 0 and 1 the F1 x100 of the label 1.

    Raises:
        CheckError: If embeddings are not finite.
    """
    from edgeembed.evaluation.logistic_regression import cross_validate, fit_and_test

    train, *others = _features(encoder, task)
    if others:
        results = [fit_and_test(train, others[0] if task.dev is not None else None, others[-1])]
    else:
        results = cross_validate(train)
    return _score(task, results)


def _score(task: TransferSet, results: "Sequence[ClassifierResult]") -> Score:
    selected = [result.c for result in results]
    details = {
        "dev accuracy x100": 100 * float(np.mean([result.dev_accuracy for result in results])),
        "min C": min(selected),
        "max C": max(selected),
    }
    f1 = [result.f1 for result in results if result.f1 is not None]
    if f1 and task.train.second:
        details[F1] = 100 * float(np.mean(f1))
    items = len((task.test or task.train).labels)
    correct = sum(result.correct for result in results)
    value = 100 * float(np.mean([result.accuracy for result in results]))
    return Score(task.name, METRIC, value, items, details, interval=scaled(share_interval(correct, items)))


def _features(encoder: SentenceEncoder, task: TransferSet) -> "Iterator[LabeledFeatures]":
    """Yield the features of each split; each distinct text is encoded once."""
    from edgeembed.evaluation.logistic_regression import LabeledFeatures

    texts = dict.fromkeys(text for split in task.splits for text in (*split.first, *split.second))
    embeddings = encode_texts(encoder.encode, list(texts))
    rows = {text: row for row, text in enumerate(texts)}

    def lookup(texts: tuple[str, ...]) -> npt.NDArray[np.float32]:
        return embeddings[[rows[text] for text in texts]]

    for split in task.splits:
        features = lookup(split.first)
        if split.second:
            second = lookup(split.second)
            features = np.concatenate([np.abs(features - second), features * second], axis=1)
        yield LabeledFeatures(features, np.array(split.labels))


def _read_folder(folder: Path) -> list[TransferSet]:
    tasks = {name: files for name, stems in TRANSFER_TASKS.items() if (files := _first_files(folder, stems))}
    if not tasks:
        raise InputError(
            f"{folder} contains none of the transfer tasks; expected one or more of mr.tsv, cr.tsv, subj.tsv, "
            "mpqa.tsv, sst2_train.tsv, trec_train.tsv and mrpc_train.tsv, with their dev and test splits"
        )
    return [_read(name, files) for name, files in tasks.items()]


def _read_file(file: Path) -> TransferSet:
    if not file.exists():
        raise InputError(f"{file} does not exist; expected a TSV file or a folder of transfer tasks")
    stem, _, split = file.stem.rpartition("_")
    if stem and split in _SPLITS:
        files = _files(file.parent, stem, file.suffix)
    else:
        stem, files = file.stem, {"train": file}
    return _read(_NAMES.get(stem, f"{file.resolve().parent.name}/{stem}"), files)


def _first_files(folder: Path, stems: Sequence[str]) -> dict[str, Path]:
    return next((files for stem in stems if (files := _files(folder, stem))), {})


def _files(folder: Path, stem: str, suffix: str = ".tsv") -> dict[str, Path]:
    """Return the files of a task by split; a task without splits is all "train"."""
    files = {split: folder / f"{stem}_{split}{suffix}" for split in _SPLITS}
    existing = {split: file for split, file in files.items() if file.exists()}
    missing = [files[split].name for split in ("train", "test") if split not in existing]
    if existing and missing:
        raise InputError(f"{next(iter(existing.values()))} has no {missing[0]} beside it; expected both in one folder")
    whole = folder / f"{stem}{suffix}"
    return existing or ({"train": whole} if whole.exists() else {})


def _read(name: str, files: dict[str, Path]) -> TransferSet:
    task = TransferSet(name, **{split: _read_examples(file) for split, file in files.items()})
    _check(task, files["train"])
    return task


def _read_examples(file: Path) -> TransferExamples:
    rows = read_tsv(file, ("label",), ("text", "sentence1", "sentence2"), _EXPECTED)
    if not rows:
        raise InputError(f"{file} has no rows below its header; {_EXPECTED}")
    unlabeled = next((number for number, row in enumerate(rows, start=1) if not row["label"]), None)
    if unlabeled is not None:
        raise InputError(f"{file}, row {unlabeled} has no label; {_EXPECTED}")
    labels = tuple(row["label"] for row in rows)
    if "text" in rows[0]:
        return TransferExamples(tuple(row["text"] for row in rows), (), labels)
    for column in ("sentence1", "sentence2"):
        if column not in rows[0]:
            raise InputError(f"{file} lacks the column {column}; {_EXPECTED}")
    first, second = (tuple(row[column] for row in rows) for column in ("sentence1", "sentence2"))
    return TransferExamples(first, second, labels)


def _check(task: TransferSet, file: Path) -> None:
    """Raise InputError if no classifier can be trained on the task."""
    counts = Counter(task.train.labels)
    if len(counts) < 2:
        raise InputError(f"{file} has one label, {next(iter(counts))!r}; expected at least two different labels")
    for split in task.splits:
        unknown = [label for label in split.labels if label not in counts]
        if unknown:
            raise InputError(f"{task.name}: the label {unknown[0]!r} is not in {file}; expected the same in all splits")
        if bool(split.second) != bool(task.train.second):
            raise InputError(f"{task.name} has single texts in one split and pairs in another; expected only one kind")
    minimum = 1 if task.dev else _MIN_PER_LABEL if task.test else _MIN_PER_LABEL_NESTED
    label, count = min(counts.items(), key=lambda each: each[1])
    if count < minimum:
        raise InputError(f"{file} has {count} rows of label {label!r}; expected at least {minimum}, for ten folds")
