"""Alignment and uniformity of embeddings on the unit sphere (Wang and Isola 2020)."""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from edgeembed_bench.render.tables import Table
from edgeembed_runtime.errors import CheckError, InputError
from edgeembed_runtime.similarity import normalize

from edgeembed.corpus.pairs import SentencePairs, read_sts
from edgeembed.evaluation.encoders import SentenceEncoder, encode_texts
from edgeembed.evaluation.intervals import Bounds, mean_interval
from edgeembed.evaluation.layout import Columns, difference, first_scores, reference_name, table, value
from edgeembed.evaluation.model_evaluation import Rows
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike, Setting

ALIGNMENT = "alignment"
UNIFORMITY = "uniformity"
POSITIVES_ABOVE = 4.0
"""Pairs with a human score above this, out of 5, are positive (SimCSE, Gao et al. 2021; DistilCSE follows it)."""
_BLOCK_ROWS = 256  # for 50,000 sentences, a block of distances takes 100 MB


@dataclass(frozen=True)
class GeometrySet:
    """Sentences, and the positive pairs among them.

    Attributes:
        name: The file's name with its folder's.
        positives: Pairs with a score above the threshold, including repeated ones.
        sentences: All distinct sentences, whatever the scores of their pairs.
        above: The threshold.
    """

    name: str
    positives: tuple[tuple[str, str], ...]
    sentences: tuple[str, ...]
    above: float


@TASKS.register("geometry")
class Geometry(EvaluationTask):
    """Alignment and uniformity of embeddings.

    Args:
        sources: Files of scored sentence pairs, as `read_geometry` takes them, or pairs that were read.
        positives_above: Pairs with a higher score are positive.

    Raises:
        InputError: If a file cannot be read, or has no positive pairs.
    """

    metavar = "FILE"
    help = "As --sts FILE: alignment and uniformity, for both of which lower is better (DistilCSE, figure 2)."

    def __init__(
        self,
        *sources: PathLike | SentencePairs,
        positives_above: Annotated[
            float, Setting("Pairs with a higher score are positive.", metavar="SCORE")
        ] = POSITIVES_ABOVE,
    ) -> None:
        self.check_settings(positives_above=positives_above)
        self.sets = [read_geometry(each, positives_above) for each in self.check_sources(sources, SentencePairs)]

    def score(self, encoder: SentenceEncoder, data: GeometrySet) -> list[Score]:
        """Score an encoder, see `score_geometry`."""
        return score_geometry(encoder, data)

    @classmethod
    def tables(cls, rows: Rows) -> list[Table]:
        """Return the values of figure 2 of DistilCSE, a table per set."""
        scores = first_scores(rows)
        return [_table(rows, at) for at, score in enumerate(scores) if score.metric == ALIGNMENT]


def read_geometry(source: str | os.PathLike[str] | SentencePairs, above: float = POSITIVES_ABOVE) -> GeometrySet:
    """Read scored sentence pairs for alignment and uniformity.

    DistilCSE measures them on STS-B's development set and refers to Wang and Isola (2020) and to SimCSE, which takes
    the pairs scored above 4 as positives and all sentences as the data.

    Args:
        source: A file in the format of `read_sts`, or pairs that were read.
        above: Pairs with a higher score than this are positive.

    Raises:
        InputError: If the file cannot be read, no pair has a score that high, or all sentences are equal.
    """
    pairs = source if isinstance(source, SentencePairs) else read_sts(Path(source))
    scored = zip(pairs.first, pairs.second, pairs.scores, strict=True)
    positives = tuple((first, second) for first, second, score in scored if score > above)
    if not positives:
        raise InputError(
            f"{pairs.name} has no pair scored above {above:g}, the highest score is {pairs.scores.max():g}; "
            "expected a lower positives_above"
        )
    sentences = tuple(dict.fromkeys([*pairs.first, *pairs.second]))
    if len(sentences) < 2:
        raise InputError(f"{pairs.name} has one distinct sentence; expected at least two")
    return GeometrySet(pairs.name, positives, sentences, above)


def score_geometry(encoder: SentenceEncoder, task: GeometrySet) -> list[Score]:
    """Compute alignment and uniformity, for both of which lower is better (Wang and Isola 2020, section 4.1).

    DistilCSE's equation 8 prints distances without the square and a minus sign before alignment, which contradicts its
    text; this follows Wang and Isola.

    Args:
        encoder: The encoder.
        task: Sentences and positive pairs.

    Returns:
        Alignment: the mean squared distance of normalized embeddings over the positive pairs, 0 to 4. Uniformity: the
        natural logarithm of the mean of exp(-2 squared distance) over all pairs of distinct sentences, -8 to 0.

    Raises:
        CheckError: If embeddings are not finite, or all zeros.
    """
    points = _normalized_embeddings(encoder, task.sentences)
    rows = {sentence: row for row, sentence in enumerate(task.sentences)}
    first, second = (points[[rows[pair[side]] for pair in task.positives]] for side in (0, 1))
    distances = np.square(first - second).sum(axis=1)
    count, above = len(points), {"positives above": task.above}
    return [
        _score(task, ALIGNMENT, float(distances.mean()), len(distances), above, mean_interval(distances)),
        _score(task, UNIFORMITY, _uniformity(points), count, {"pairs": count * (count - 1) // 2}),
    ]


def _normalized_embeddings(encoder: SentenceEncoder, sentences: tuple[str, ...]) -> npt.NDArray[np.float64]:
    points = normalize(encode_texts(encoder.encode, list(sentences))).astype(np.float64)
    zeros = np.flatnonzero(~points.any(axis=1))
    if zeros.size:
        text = sentences[zeros[0]][:80]
        raise CheckError(
            f"{zeros.size} of {len(points)} embeddings are all zeros and cannot be normalized, the first is of the "
            f"text {text!r}"
        )
    return points


def _uniformity(points: npt.NDArray[np.float64]) -> float:
    """Return the uniformity of (n, dim) unit vectors over the n (n - 1) / 2 pairs i < j, block by block."""
    count, total = len(points), 0.0
    for start in range(0, count, _BLOCK_ROWS):
        squared = 2 - 2 * (points[start : start + _BLOCK_ROWS] @ points[start:].T)
        total += float(np.triu(np.exp(-2 * squared), k=1).sum())
    return math.log(total / (count * (count - 1) / 2))


def _score(
    task: GeometrySet,
    metric: str,
    found: float,
    items: int,
    details: dict[str, float],
    interval: Bounds | None = None,
) -> Score:
    return Score(f"{task.name}, {metric}", metric, found, items, details, lower_is_better=True, interval=interval)


def _table(rows: Rows, at: int) -> Table:
    """Return the table of a set: alignment at an index, uniformity at the next."""
    scores, reference = first_scores(rows), reference_name(rows)
    alignment, uniformity = scores[at], scores[at + 1]
    columns: Columns = {}
    for index in (at, at + 1):
        columns[f"{scores[index].metric} ↓"] = value(index, 4)
        if reference is not None:
            columns[f"{scores[index].metric}, difference"] = difference(index)
    legends = [
        "↓: lower is better",
        (
            f"alignment: mean squared distance of the normalized embeddings of {alignment.items:,} pairs scored above "
            f"{alignment.details['positives above']:g}"
        ),
        (
            f"uniformity: log of the mean of exp(-2 squared distance) over the {uniformity.details['pairs']:,} pairs "
            f"of {uniformity.items:,} distinct sentences"
        ),
        *([] if reference is None else [f"difference: from {reference}'s, below 0 is better"]),
    ]
    return table(f"Geometry, {alignment.task.removesuffix(f', {ALIGNMENT}')}", rows, columns, legends)
