"""Texts, or pairs of texts, and what they are: a label, or a score that is binned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError

from edgeembed.tsv import read_tsv

BIN = 0.2
"""Width of a bin of scores: STS-B becomes a classification (section 3.2)."""
_EXPECTED = (
    "expected TSV with a header that names label or score, and text, sentence1 and sentence2, or question and sentence"
)
_PAIRS = (("sentence1", "sentence2"), ("question", "sentence"), ("premise", "hypothesis"))


@dataclass(frozen=True)
class Examples:
    """One part of a task.

    Attributes:
        first: Texts.
        second: The other texts of pairs; empty for single texts.
        classes: What each is, int64 (examples,).
        scores: What people gave, float64 (examples,), where scores were binned; None for labels.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    classes: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64] | None


@dataclass(frozen=True)
class Task:
    """What a classifier learns and is measured on.

    Attributes:
        train: What it learns from.
        dev: What it is measured on.
        names: What each class is called: labels, or the middles of bins.
        is_scored: Whether classes are binned scores.
    """

    train: Examples
    dev: Examples
    names: tuple[str, ...]

    @property
    def is_scored(self) -> bool:
        """Whether classes are binned scores."""
        return self.dev.scores is not None

    @property
    def is_pairs(self) -> bool:
        """Whether examples are pairs of texts."""
        return bool(self.dev.second)

    def values(self, classes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Give the scores that classes stand for, where they are binned scores."""
        return np.array([float(self.names[each]) for each in classes])


def read_task(train: Path, dev: Path) -> Task:
    """Read a task's two parts.

    Args:
        train: UTF-8, tab-separated, no quoting, with a header that names `label`, or `score` which is binned by 0.2;
            and `text`, or a pair of columns: `sentence1` and `sentence2`, `question` and `sentence`, `premise` and
            `hypothesis`.
        dev: The same, of the same kind.

    Raises:
        InputError: If a file cannot be used, or holds what the other does not.
    """
    learned, measured = _rows(train), _rows(dev)
    if learned.columns != measured.columns or learned.kind != measured.kind:
        raise InputError(
            f"{dev} has {', '.join([*measured.columns, measured.kind])}, but {train} has "
            f"{', '.join([*learned.columns, learned.kind])}; expected the same columns"
        )
    names = _bins([*learned.values, *measured.values]) if learned.kind == "score" else sorted(set(learned.values))
    unknown = sorted(set(measured.values) - set(names)) if learned.kind == "label" else []
    if unknown:
        raise InputError(f"{dev} has the label {unknown[0]!r}, which {train} has not; expected the same labels")
    if len(names) < 2:
        raise InputError(f"{train} holds one label, {names[0]!r}; expected two or more to tell apart")
    return Task(_examples(learned, names), _examples(measured, names), tuple(names))


@dataclass(frozen=True)
class _Rows:
    columns: tuple[str, ...]
    kind: str
    texts: list[tuple[str, ...]]
    values: list[str]


def _rows(file: Path) -> _Rows:
    optional = ("text", "label", "score", *(column for pair in _PAIRS for column in pair))
    rows = read_tsv(file, (), optional, _EXPECTED)
    if not rows:
        raise InputError(f"{file} holds no rows below its header; {_EXPECTED}")
    kind = next((name for name in ("label", "score") if name in rows[0]), None)
    columns = next((pair for pair in (("text",), *_PAIRS) if set(pair) <= rows[0].keys()), None)
    if kind is None or columns is None:
        raise InputError(f"{file} has none of the columns that are needed; {_EXPECTED}")
    for number, row in enumerate(rows, start=1):
        if not row[kind] or (kind == "score" and not _is_number(row[kind])):
            raise InputError(f"{file}, row {number} has the {kind} {row[kind]!r}; {_EXPECTED}")
    return _Rows(columns, kind, [tuple(row[name] for name in columns) for row in rows], [row[kind] for row in rows])


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _bins(values: Sequence[str]) -> list[str]:
    numbers = [float(value) for value in values]
    first, last = round(min(numbers) / BIN), round(max(numbers) / BIN)
    return [f"{BIN * place:.1f}" for place in range(first, last + 1)]


def _examples(rows: _Rows, names: Sequence[str]) -> Examples:
    places = {name: place for place, name in enumerate(names)}
    scores = np.array([float(value) for value in rows.values]) if rows.kind == "score" else None
    named = rows.values if scores is None else [f"{BIN * round(score / BIN):.1f}" for score in scores]
    second = tuple(texts[1] for texts in rows.texts) if len(rows.columns) > 1 else ()
    classes = np.array([places[name] for name in named], dtype=np.int64)
    return Examples(tuple(texts[0] for texts in rows.texts), second, classes, scores)
