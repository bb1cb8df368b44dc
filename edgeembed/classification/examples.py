"""Labeled texts and pairs of texts, read from a file or a `datasets.Dataset`."""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.characters import is_blank
from edgeembed_runtime.errors import InputError, short_repr

from edgeembed.corpus.tables import read_tsv

if TYPE_CHECKING:
    from datasets import Dataset

ScoreRange = tuple[float, float]
"""The lowest and the highest bin of scores."""
BIN_WIDTH = 0.2
"""Width of a bin of scores, by which STS-B becomes a classification task ("Cross-architecture distillation using
bidirectional CMOW embeddings", section 3.2). The paper's tables 12 and 13 count 21 classes, as many as T5, from which
it takes the method (Raffel et al. 2020, section 2.4: scores from 1 to 5)."""
_PAIR_COLUMNS = (("sentence1", "sentence2"), ("question", "sentence"), ("premise", "hypothesis"))
_TARGET_COLUMNS = ("label", "score")
_COLUMNS = ("text", *_TARGET_COLUMNS, *(column for pair in _PAIR_COLUMNS for column in pair))
_EXPECTED = (
    "expected a column label or score, and a column text or two columns sentence1 and sentence2, question and "
    "sentence, or premise and hypothesis"
)
_MAX_BINS = 1000
_MAX_SCORE = 1e9  # far beyond, float64 cannot tell bins apart
_MAX_SHOWN_ROWS = 5

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Examples:
    """Texts or pairs of texts with their classes.

    Attributes:
        first: The texts, or the first text of each pair.
        second: The second text of each pair; empty for single texts.
        class_ids: The index of each example's label, int64 (examples,).
        scores: The scores before binning, float64 (examples,); None for labels.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    class_ids: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64] | None

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.first)

    def take(self, rows: npt.NDArray[np.int64]) -> Examples:
        """Return some of the examples, in the order of the rows."""
        return Examples(
            first=tuple(self.first[row] for row in rows),
            second=tuple(self.second[row] for row in rows) if self.second else (),
            class_ids=self.class_ids[rows],
            scores=None if self.scores is None else self.scores[rows],
        )


@dataclass(frozen=True)
class ClassificationData:
    """The training and development split of a classification task.

    Attributes:
        train: The training split.
        dev: The development split.
        labels: The name of each class, in the order of class indices; for scores, the centers of the bins.
    """

    train: Examples
    dev: Examples
    labels: tuple[str, ...]

    @property
    def is_scored(self) -> bool:
        """Whether the classes are binned scores."""
        return self.dev.scores is not None

    @property
    def is_pairs(self) -> bool:
        """Whether the examples are pairs of texts."""
        return bool(self.dev.second)

    def bin_centers(self, class_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the score that each class stands for; only for binned scores."""
        return np.array([float(self.labels[index]) for index in class_ids])

    def counts(self, examples: Examples) -> dict[str, int]:
        """Return the number of examples of each label."""
        found = Counter(examples.class_ids.tolist())
        return {label: found[index] for index, label in enumerate(self.labels)}


def read_classification_data(
    train: str | os.PathLike[str] | Dataset,
    dev: str | os.PathLike[str] | Dataset,
    score_range: ScoreRange | None = None,
) -> ClassificationData:
    """Read the training and development split of a classification task.

    Args:
        train: A TSV or CSV file with a header, or a dataset. It has a column `label`, or `score`, which is binned by
            0.2; and a column `text`, or a pair of columns: `sentence1` and `sentence2`, `question` and `sentence`, or
            `premise` and `hypothesis`.
        dev: Likewise, with the same columns.
        score_range: The lowest and the highest bin of scores: scores beyond belong to the nearest of the two. None is
            the range of the data.

    Rows without text are left out, and a warning is logged.

    Returns:
        The data. Labels are sorted by name.

    Raises:
        InputError: If a file or dataset cannot be used, or the two do not fit together.
    """
    train_rows, dev_rows = _read_rows(train, "train"), _read_rows(dev, "dev")
    if train_rows.columns != dev_rows.columns or train_rows.target != dev_rows.target:
        raise InputError(
            f"{dev_rows.where} has the columns {', '.join([*dev_rows.columns, dev_rows.target])}, but "
            f"{train_rows.where} has {', '.join([*train_rows.columns, train_rows.target])}; expected the same columns"
        )
    if train_rows.target == "score":
        labels = _bin_labels([*train_rows.targets, *dev_rows.targets], score_range)
    elif score_range is not None:
        raise InputError(
            f"score_range is {score_range}, but {train_rows.where} has labels; expected none, or a column score"
        )
    else:
        labels = sorted(set(train_rows.targets))
        unknown = sorted(set(dev_rows.targets) - set(labels))
        if unknown:
            raise InputError(
                f"{dev_rows.where} has the label {unknown[0]!r}, which {train_rows.where} lacks; expected the same "
                "labels in both"
            )
    if len(labels) < 2:
        raise InputError(f"{train_rows.where} has one label, {labels[0]!r}; expected at least two different labels")
    return ClassificationData(_examples(train_rows, labels), _examples(dev_rows, labels), tuple(labels))


def check_score_range(score_range: ScoreRange | None) -> None:
    """Raise InputError unless a range of scores is None, or two numbers with at least two bins between them."""
    if score_range is None:
        return
    is_pair = isinstance(score_range, tuple | list) and len(score_range) == 2
    if not is_pair or not all(isinstance(end, int | float) and np.isfinite(end) for end in score_range):
        raise InputError(f"score_range is {score_range!r}; expected two numbers, such as (1, 5)")
    _check_width(*score_range)
    if _bin(score_range[0]) >= _bin(score_range[1]):
        raise InputError(
            f"score_range is {tuple(score_range)}; expected the lowest and the highest bin of scores, such as (1, 5)"
        )


@dataclass(frozen=True)
class _Rows:
    """The rows of a table: the names of the text columns and of the target column, and their values."""

    where: str
    columns: tuple[str, ...]
    target: str
    texts: list[tuple[str, ...]]
    targets: list[str]


def _read_rows(source: str | os.PathLike[str] | Dataset, name: str) -> _Rows:
    if isinstance(source, str | os.PathLike):
        where = str(Path(source))
        rows = read_tsv(Path(source), (), _COLUMNS, _EXPECTED)
    else:
        where = f"the dataset {name}"
        rows = _dataset_rows(source, where)
    if not rows:
        raise InputError(f"{where} holds no rows below its header; {_EXPECTED}")
    target = next((column for column in _TARGET_COLUMNS if column in rows[0]), None)
    columns = next((columns for columns in (("text",), *_PAIR_COLUMNS) if set(columns) <= rows[0].keys()), None)
    if target is None or columns is None:
        raise InputError(f"{where} lacks columns; {_EXPECTED}")
    texts = {n: tuple(_as_text(where, n, row, column) for column in columns) for n, row in enumerate(rows, start=1)}
    kept = [number for number, each in texts.items() if not any(map(is_blank, each))]
    if len(kept) < len(rows):
        _warn_of_blank(where, columns, sorted(texts.keys() - set(kept)), len(rows))
    targets = [_target(where, number, rows[number - 1], target) for number in kept]
    return _Rows(where, columns, target, [texts[number] for number in kept], targets)


def _warn_of_blank(where: str, columns: Sequence[str], blank: Sequence[int], count: int) -> None:
    names = " or ".join(columns)
    if len(blank) == count:
        raise InputError(f"{where} has no {names} in any row; expected text: fill it in")
    shown = ", ".join(map(str, blank[:_MAX_SHOWN_ROWS])) + (", ..." if len(blank) > _MAX_SHOWN_ROWS else "")
    _logger.warning("%s: %d of %d rows have no %s and are left out: row %s", where, len(blank), count, names, shown)


def _target(where: str, number: int, row: dict[str, Any], column: str) -> str:
    value = _as_text(where, number, row, column)
    if not value:
        raise InputError(f"{where}, row {number} has no {column}; expected one in every row: fill it in")
    if column == "score" and not _is_number(value):
        raise InputError(f"{where}, row {number} has the score {short_repr(value)}; expected a finite number")
    return value


def _as_text(where: str, number: int, row: dict[str, Any], column: str) -> str:
    """Return a value of a row without white space at either end; a missing one is empty."""
    value, is_target = row[column], column in _TARGET_COLUMNS
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, str | int | float if is_target else str):
        expected = f"one {column} per row, a str or a number" if is_target else "a str"
        raise InputError(f"{where}, row {number} has the {column} {short_repr(value)}; expected {expected}")
    return str(value).strip()


def _dataset_rows(dataset: Any, where: str) -> list[dict[str, Any]]:
    import datasets

    if not isinstance(dataset, datasets.Dataset):
        raise InputError(f"{where} is {type(dataset).__name__}; expected the path of a TSV file, or a datasets.Dataset")
    plain = dataset.with_format(None)
    columns = {name: list(plain[name]) for name in plain.column_names if name in _COLUMNS}
    label = plain.features.get("label")
    if isinstance(label, datasets.ClassLabel):  # integers with names; -1 is a missing label
        columns["label"] = [None if value is None or value < 0 else label.int2str(value) for value in columns["label"]]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _bin_labels(scores: Sequence[str], score_range: ScoreRange | None) -> list[str]:
    low, high = score_range or (min(map(float, scores)), max(map(float, scores)))
    _check_width(low, high)
    return [f"{BIN_WIDTH * index:.1f}" for index in range(_bin(low), _bin(high) + 1)]


def _check_width(low: float, high: float) -> None:
    if (high - low) / BIN_WIDTH >= _MAX_BINS or max(-low, high) > _MAX_SCORE:
        raise InputError(
            f"the scores range from {low:g} to {high:g}, which makes too many bins of {BIN_WIDTH}; expected a range "
            f"below {_MAX_BINS * BIN_WIDTH:g}: choose it with --score-range LOW HIGH"
        )


def _bin(score: float) -> int:
    return round(score / BIN_WIDTH)


def _examples(rows: _Rows, labels: Sequence[str]) -> Examples:
    if rows.target == "score":
        scores = np.array([float(value) for value in rows.targets])
        low, high = float(labels[0]), float(labels[-1])
        class_ids = np.array([_bin(score) for score in scores.clip(low, high)], dtype=np.int64) - _bin(low)
    else:
        scores, index_of = None, {label: index for index, label in enumerate(labels)}
        class_ids = np.array([index_of[name] for name in rows.targets], dtype=np.int64)
    second = tuple(texts[1] for texts in rows.texts) if len(rows.columns) > 1 else ()
    return Examples(tuple(texts[0] for texts in rows.texts), second, class_ids, scores)
