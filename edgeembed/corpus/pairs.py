"""Labeled pairs, triplets and scored pairs of sentences."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError, short_repr

from edgeembed.corpus.inputs import is_dataset
from edgeembed.corpus.remote import AnyPath
from edgeembed.corpus.sources import split_columns
from edgeembed.corpus.tables import read_columns, read_header, read_tsv

if TYPE_CHECKING:
    import datasets

COLUMNS = ("anchor", "positive", "hard_negative")
"""The columns of labeled pairs; the last one is optional."""

PairsLike: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | datasets.Dataset"
"""One file of labeled pairs, a list of files, or a dataset; see `read_pairs`."""

_SCORED_COLUMNS = ("sentence1", "sentence2", "score")


@dataclass(frozen=True)
class SentencePairs:
    """Sentence pairs with human similarity scores, such as STS-B.

    Attributes:
        name: The file's name, with its folder.
        first: The first sentence of each pair.
        second: The second sentence of each pair.
        scores: The similarity scores, float64 (pairs,).
        held_out: Whether each pair is outside STS-B, bool (pairs,); None if the file does not say.
    """

    name: str
    first: list[str]
    second: list[str]
    scores: npt.NDArray[np.float64]
    held_out: npt.NDArray[np.bool_] | None


def read_pairs(pairs: PairsLike) -> dict[str, list[str]]:
    """Read labeled pairs, or triplets with hard negatives.

    Args:
        pairs: TSV or CSV files with a header, their URLs, or a dataset. Columns are `anchor`, `positive` and optionally
            `hard_negative`; others are ignored. `#column1,column2` after a path names these columns of the file.

    Returns:
        The texts by column, row by row, file after file.

    Raises:
        InputError: If a file cannot be read or lacks a column, only some files have hard negatives, or there are fewer
            than two pairs.
    """
    if is_dataset(pairs):
        return _expect_two(_dataset_columns(pairs), "the given dataset")
    sources = check_pairs(pairs)
    tables = [_read_file(source) for source in sources]
    if len({len(table) for table in tables}) > 1:
        without = [source for source, table in zip(sources, tables, strict=True) if COLUMNS[-1] not in table]
        raise InputError(
            f"{', '.join(without)} has no {COLUMNS[-1]} column, but other pairs have; expected it in all files or in "
            "none: `edgeembed mine` finds hard negatives"
        )
    together = {name: [text for table in tables for text in table[name]] for name in tables[0]}
    return _expect_two(together, ", ".join(sources))


def check_pairs(pairs: PairsLike) -> list[str]:
    """Check that files of labeled pairs exist, without reading them.

    Args:
        pairs: See `read_pairs`.

    Returns:
        The files as strings, with the columns that were named after them; none for a dataset.

    Raises:
        InputError: If there is no file, one does not exist, or the argument is of another type.
    """
    if is_dataset(pairs):
        return []
    sources = [pairs] if isinstance(pairs, str | os.PathLike) else pairs
    is_list = isinstance(sources, Sequence) and not isinstance(sources, bytes)
    if not is_list or not sources or not all(isinstance(source, str | os.PathLike) for source in sources):
        raise InputError(f"pairs is {short_repr(pairs)}; expected a TSV of labeled pairs, a list of them, or a dataset")
    names = [os.fspath(source) for source in sources]
    for name in names:
        if not split_columns(name)[0].is_file():
            raise InputError(f"{name} is not a file; expected a TSV of labeled pairs")
    return names


def pair_paths(pairs: PairsLike) -> list[Path]:
    """Return the local files that labeled pairs are read from, so that no output replaces one of them.

    Args:
        pairs: See `read_pairs`.
    """
    if is_dataset(pairs):
        return []
    sources = [pairs] if isinstance(pairs, str | os.PathLike) else pairs
    paths = (split_columns(os.fspath(source))[0] for source in sources)
    return [path for path in paths if isinstance(path, Path)]


def expect_hard_negatives(pairs: Mapping[str, Sequence[str]], sources: Sequence[str | Path]) -> None:
    """Raise InputError if pairs have no hard negatives.

    Args:
        pairs: The texts by column, as returned by `read_pairs`.
        sources: The files that the pairs were read from, for the error message.
    """
    if COLUMNS[-1] not in pairs:
        raise InputError(
            f"{', '.join(map(str, sources))} has no {COLUMNS[-1]} column, which the recipe's loss needs: "
            "`edgeembed mine` finds hard negatives"
        )


def read_sts(file: Path) -> SentencePairs:
    """Read a file of scored sentence pairs.

    Args:
        file: A TSV or CSV file, see `edgeembed.corpus.tables.read_rows`, with the columns `sentence1`, `sentence2` and
            `score`. An optional column `in_stsb` names the part of STS-B that also has the pair, or `none`.

    Raises:
        InputError: If the file cannot be read, lacks a column, has a score that is not a number, or does not hold two
            pairs with different scores.
    """
    expected = f"expected a TSV with the columns {', '.join(_SCORED_COLUMNS)}"
    rows = read_tsv(file, _SCORED_COLUMNS, ("in_stsb",), expected)
    if not rows:
        raise InputError(f"{file} holds no pairs below its header; expected two or more")
    scores = np.array([_parse_score(row["score"], file, number) for number, row in enumerate(rows, start=1)])
    if len(set(scores)) < 2:
        raise InputError(f"{file}: {len(rows)} pairs, {len(set(scores))} different scores; expected two or more")
    held_out = np.array([row["in_stsb"] == "none" for row in rows]) if "in_stsb" in rows[0] else None
    name = f"{file.resolve().parent.name}/{file.stem}"
    return SentencePairs(name, [row["sentence1"] for row in rows], [row["sentence2"] for row in rows], scores, held_out)


def _read_file(source: str) -> dict[str, list[str]]:
    path, requested = split_columns(source)
    columns = requested or _default_columns(path)
    if len(columns) not in (2, 3):
        raise InputError(
            f"{source} names {len(columns)} columns; expected those of {', '.join(COLUMNS[:2])} and optionally "
            f"{COLUMNS[2]}"
        )
    texts: dict[str, list[str]] = {name: [] for name in COLUMNS[: len(columns)]}
    for _, fields in read_columns(path, columns):
        for name, field in zip(texts, fields, strict=True):
            texts[name].append(" ".join(field.split()))  # a field of CSV may hold line breaks
    return texts


def _default_columns(path: AnyPath) -> tuple[str, ...]:
    header = read_header(path)
    if not set(COLUMNS[:2]) <= set(header):
        raise InputError(
            f"{path} has the columns {', '.join(header)}; expected a TSV or CSV with anchor, positive and optionally "
            f"{COLUMNS[2]}: choose with PATH#column1,column2"
        )
    return tuple(name for name in COLUMNS if name in header)


def _dataset_columns(dataset: Any) -> dict[str, list[str]]:
    names = [name for name in COLUMNS if name in dataset.column_names]
    if names[:2] != list(COLUMNS[:2]):
        raise InputError(
            f"the dataset has the columns {', '.join(dataset.column_names)}; expected anchor, positive and optionally "
            f"{COLUMNS[2]}: rename them with dataset.rename_columns"
        )
    plain = dataset.with_format(None)
    texts = {name: list(plain[name]) for name in names}
    for name, values in texts.items():
        wrong = next((value for value in values if not isinstance(value, str)), "")
        if wrong != "":
            raise InputError(f"column {name} of the dataset holds {short_repr(wrong)}; expected text in every row")
    return {name: [" ".join(value.split()) for value in values] for name, values in texts.items()}


def _expect_two(texts: dict[str, list[str]], where: str) -> dict[str, list[str]]:
    count = len(texts[COLUMNS[0]])
    if count < 2:
        raise InputError(f"{where} holds {count} pairs; expected two or more")
    return texts


def _parse_score(text: str, file: Path, number: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise InputError(f"{file}, pair {number}: score {text!r} is not a number; expected one in every row")
    return score
