"""Transfer: what a logistic regression learns from frozen vectors, by SentEval's protocol."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.encoders import SentenceEncoder, vectors
from edgeembed.evaluation.scores import Score
from edgeembed.tsv import read_tsv

if TYPE_CHECKING:
    from edgeembed.evaluation.classification import Labelled, Outcome

METRIC = "accuracy x100"
F1 = "F1 x100"
TASKS = {
    "MR": ("mr",),
    "CR": ("cr",),
    "SUBJ": ("subj",),
    "MPQA": ("mpqa",),
    "SST-2": ("sst2",),
    "TREC": ("trec",),
    "MRPC": ("mrpc", "mrpc_tok"),
}
"""How the files of each task may be called, by what DistilCSE calls the task, in its order."""
_NAMES = {stem: name for name, stems in TASKS.items() for stem in stems}
_PARTS = ("train", "dev", "test")
_FEWEST, _FEWEST_FOLDED = 10, 12  # of each label: ten folds; ten folds of what any of ten folds leaves
_EXPECTED = "expected TSV with a header that names label, and text or sentence1 and sentence2"


@dataclass(frozen=True)
class Examples:
    """Texts, or pairs of texts, and what they are.

    Attributes:
        first: Texts.
        second: The other texts of pairs; empty for single texts.
        labels: What each is.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class TransferSet:
    """A set that a classifier learns from and is tested on.

    Attributes:
        name: What the paper calls it; else the file's name, with its folder, without its part.
        train: What is learned from; all there is, where there is no `test`.
        dev: What regularisation is chosen on; None if on folds.
        test: What is tested on; None if on folds of `train`.
    """

    name: str
    train: Examples
    dev: Examples | None = None
    test: Examples | None = None

    @property
    def parts(self) -> tuple[Examples, ...]:
        """The parts that are there."""
        return tuple(part for part in (self.train, self.dev, self.test) if part is not None)


def read_transfer(paths: Sequence[Path]) -> list[TransferSet]:
    """Read sets to classify.

    Args:
        paths: Folders, searched for those of the seven tasks that they hold: `mr.tsv`, `cr.tsv`, `subj.tsv`,
            `mpqa.tsv`, `sst2_train.tsv`, `sst2_dev.tsv`, `sst2_test.tsv`, `trec_train.tsv`, `trec_test.tsv`,
            `mrpc_train.tsv`, `mrpc_test.tsv`, the last two also with `mrpc_tok` for `mrpc`. And files: `NAME.tsv`, a
            set without parts, or one of `NAME_train.tsv`, `NAME_dev.tsv` and `NAME_test.tsv`, which stands for all of
            them. UTF-8, tab-separated, no quoting, with a header that names `label`, and `text` or `sentence1` and
            `sentence2`.

    Returns:
        The sets in the order of `paths`, a folder's in the paper's.

    Raises:
        InputError: If a file cannot be used, a set lacks a part or has too little of a label to be folded, a folder
            holds none of the tasks, or a set is named twice.
    """
    found: dict[str, TransferSet] = {}
    for path in paths:
        for each in _read_folder(path) if path.is_dir() else [_read_file(path)]:
            if each.name in found:
                raise InputError(f"{path}: {each.name} is given already; expected each set once, by one of its files")
            found[each.name] = each
    return list(found.values())


def score_transfer(encoder: SentenceEncoder, task: TransferSet) -> Score:
    """Score an encoder by what a logistic regression on its vectors, as they come, classifies rightly.

    Features are a text's vector, or of a pair |u - v| and u * v. A set with a test part is learned on `train` alone
    and tested once; any other is tested by ten folds, and the mean is given.

    Args:
        encoder: What to score.
        task: A set.

    Returns:
        Accuracy x100; among the details that on what regularisation was chosen on, the least and the greatest C that
        was chosen, and for pairs whose labels are 0 and 1 F1 x100 of the label 1.

    Raises:
        CheckError: If the encoder gives vectors that are not finite.
    """
    from edgeembed.evaluation.classification import cross_validated, tested

    train, *others = _labelled(encoder, task)
    if others:
        outcomes = [tested(train, others[0] if task.dev is not None else None, others[-1])]
    else:
        outcomes = cross_validated(train)
    return _score(task, outcomes)


def _score(task: TransferSet, outcomes: "Sequence[Outcome]") -> Score:
    strengths = [each.c for each in outcomes]
    details = {
        "dev accuracy x100": 100 * float(np.mean([each.dev_accuracy for each in outcomes])),
        "least C": min(strengths),
        "greatest C": max(strengths),
    }
    f1 = [each.f1 for each in outcomes if each.f1 is not None]
    if f1 and task.train.second:
        details[F1] = 100 * float(np.mean(f1))
    items = len((task.test or task.train).labels)
    return Score(task.name, METRIC, 100 * float(np.mean([each.accuracy for each in outcomes])), items, details)


def _labelled(encoder: SentenceEncoder, task: TransferSet) -> "Iterator[Labelled]":
    """Give the features of the parts that are there, each distinct text encoded once."""
    from edgeembed.evaluation.classification import Labelled

    texts = dict.fromkeys(text for part in task.parts for text in (*part.first, *part.second))
    encoded = vectors(encoder.encode, list(texts))
    places = {text: place for place, text in enumerate(texts)}

    def rows(each: tuple[str, ...]) -> npt.NDArray[np.float32]:
        return encoded[[places[text] for text in each]]

    for part in task.parts:
        features = rows(part.first)
        if part.second:
            second = rows(part.second)
            features = np.concatenate([np.abs(features - second), features * second], axis=1)
        yield Labelled(features, np.array(part.labels))


def _read_folder(folder: Path) -> list[TransferSet]:
    found = {name: files for name, stems in TASKS.items() if (files := _first(folder, stems))}
    if not found:
        raise InputError(
            f"{folder} holds none of the transfer tasks; expected one or more of mr.tsv, cr.tsv, subj.tsv, mpqa.tsv, "
            "sst2_train.tsv, trec_train.tsv and mrpc_train.tsv, with their dev and test parts"
        )
    return [_read(name, files) for name, files in found.items()]


def _read_file(file: Path) -> TransferSet:
    if not file.exists():
        raise InputError(f"{file} is not there; expected a TSV or a folder of the transfer tasks")
    stem, _, part = file.stem.rpartition("_")
    if stem and part in _PARTS:
        files = _files(file.parent, stem, file.suffix)
    else:
        stem, files = file.stem, {"train": file}
    return _read(_NAMES.get(stem, f"{file.resolve().parent.name}/{stem}"), files)


def _first(folder: Path, stems: Sequence[str]) -> dict[str, Path]:
    return next((files for stem in stems if (files := _files(folder, stem))), {})


def _files(folder: Path, stem: str, ending: str = ".tsv") -> dict[str, Path]:
    """Give the files of a set by part; a set without parts is all "train"."""
    parts = {part: folder / f"{stem}_{part}{ending}" for part in _PARTS}
    found = {part: file for part, file in parts.items() if file.exists()}
    missing = [parts[part].name for part in ("train", "test") if part not in found]
    if found and missing:
        raise InputError(f"{next(iter(found.values()))} stands without {missing[0]}; expected both in one folder")
    whole = folder / f"{stem}{ending}"
    return found or ({"train": whole} if whole.exists() else {})


def _read(name: str, files: dict[str, Path]) -> TransferSet:
    task = TransferSet(name, **{part: _examples(file) for part, file in files.items()})
    _check(task, files["train"])
    return task


def _examples(file: Path) -> Examples:
    rows = read_tsv(file, ("label",), ("text", "sentence1", "sentence2"), _EXPECTED)
    if not rows:
        raise InputError(f"{file} holds no rows below its header; {_EXPECTED}")
    bare = next((number for number, row in enumerate(rows, start=1) if not row["label"]), None)
    if bare is not None:
        raise InputError(f"{file}, row {bare} has no label; {_EXPECTED}")
    labels = tuple(row["label"] for row in rows)
    if "text" in rows[0]:
        return Examples(tuple(row["text"] for row in rows), (), labels)
    for column in ("sentence1", "sentence2"):
        if column not in rows[0]:
            raise InputError(f"{file} lacks the column {column}; {_EXPECTED}")
    return Examples(tuple(row["sentence1"] for row in rows), tuple(row["sentence2"] for row in rows), labels)


def _check(task: TransferSet, file: Path) -> None:
    """Refuse what cannot be learned from, before a model is loaded."""
    counts = Counter(task.train.labels)
    if len(counts) < 2:
        raise InputError(f"{file} holds one label, {next(iter(counts))!r}; expected two or more to tell apart")
    for part in task.parts:
        unknown = [label for label in part.labels if label not in counts]
        if unknown:
            raise InputError(f"{task.name}: {unknown[0]!r} is no label in {file}; expected the same in all parts")
        if bool(part.second) != bool(task.train.second):
            raise InputError(
                f"{task.name} has single texts in one part and pairs in another; expected one or the other"
            )
    fewest = 1 if task.dev else _FEWEST if task.test else _FEWEST_FOLDED
    label, count = min(counts.items(), key=lambda each: each[1])
    if count < fewest:
        raise InputError(f"{file} holds {count} rows of label {label!r}; expected {fewest} or more, to make ten folds")
