"""Geometry: how near alike sentences lie on the unit sphere, and how evenly all of them are spread over it."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import CheckError, InputError
from edgeembed_runtime.similarity import normalize

from edgeembed.evaluation.encoders import SentenceEncoder, vectors
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.sts import read_sts

ALIGNMENT = "alignment"
UNIFORMITY = "uniformity"
POSITIVES_ABOVE = 4.0
"""Pairs that people scored higher than this, of 0 to 5, are positive: SimCSE's choice, which DistilCSE follows."""
_ROWS = 256  # of 50,000 sentences, a block of distances then takes 100 MB


@dataclass(frozen=True)
class GeometrySet:
    """Sentences, and pairs of them that mean nearly the same.

    Attributes:
        name: The file's name, with its folder.
        positives: Pairs that people scored above the threshold, as often as they stand in the file.
        sentences: Every distinct sentence of the file, whatever its pair was scored.
        above: The threshold.
    """

    name: str
    positives: tuple[tuple[str, str], ...]
    sentences: tuple[str, ...]
    above: float


def read_geometry(file: Path, above: float = POSITIVES_ABOVE) -> GeometrySet:
    """Read a file of scored sentence pairs for alignment and uniformity.

    DistilCSE names STS-B's dev set, and for the rest Wang and Isola, and Gao et al. (SimCSE), who take the pairs scored
    higher than 4 as positive and all sentences as the data.

    Args:
        file: As for `read_sts`.
        above: Pairs with a score higher than this are positive.

    Raises:
        InputError: If the file cannot be used, no pair is scored that high, or all its sentences are one.
    """
    pairs = read_sts(file)
    both = zip(pairs.first, pairs.second, pairs.scores, strict=True)
    positives = tuple((first, second) for first, second, score in both if score > above)
    if not positives:
        raise InputError(
            f"{file} holds no pair scored above {above:g}, the highest score is {pairs.scores.max():g}; "
            "expected a lower --positives-above"
        )
    sentences = tuple(dict.fromkeys([*pairs.first, *pairs.second]))
    if len(sentences) < 2:
        raise InputError(f"{file} holds one distinct sentence; expected two or more, which have a distance")
    return GeometrySet(pairs.name, positives, sentences, above)


def score_geometry(encoder: SentenceEncoder, task: GeometrySet) -> list[Score]:
    """Score an encoder by equation 8 of DistilCSE, with the squares and the sign of Wang and Isola (2020).

    The paper prints distances that are not squared and a minus before alignment, and says that lower is better, which
    holds without the minus alone.

    Args:
        encoder: What to score.
        task: Sentences and positive pairs.

    Returns:
        Alignment, the mean squared distance of the unit vectors of positive pairs, 0 to 4; and uniformity, the natural
        logarithm of the mean of exp(-2 squared distance) over all pairs of distinct sentences, -8 to 0.

    Raises:
        CheckError: If the encoder gives vectors that are not finite, or all zeros.
    """
    points = _points(encoder, task.sentences)
    places = {sentence: place for place, sentence in enumerate(task.sentences)}
    first, second = (points[[places[pair[side]] for pair in task.positives]] for side in (0, 1))
    alignment = float(np.square(first - second).sum(axis=1).mean())
    count = len(points)
    return [
        _score(task, ALIGNMENT, alignment, len(task.positives), {"positives above": task.above}),
        _score(task, UNIFORMITY, _uniformity(points), count, {"pairs": count * (count - 1) // 2}),
    ]


def _points(encoder: SentenceEncoder, sentences: tuple[str, ...]) -> npt.NDArray[np.float64]:
    points = normalize(vectors(encoder.encode, list(sentences))).astype(np.float64)
    nowhere = np.flatnonzero(~points.any(axis=1))
    if nowhere.size:
        text = sentences[nowhere[0]][:80]
        raise CheckError(f"{nowhere.size} of {len(points)} vectors are all zeros and on no sphere, the first: {text!r}")
    return points


def _uniformity(points: npt.NDArray[np.float64]) -> float:
    """Give the uniformity of (n, dim) unit vectors over the n (n - 1) / 2 pairs i < j."""
    count, total = len(points), 0.0
    for start in range(0, count, _ROWS):
        squared = 2 - 2 * (points[start : start + _ROWS] @ points[start:].T)
        total += float(np.triu(np.exp(-2 * squared), k=1).sum())
    return math.log(total / (count * (count - 1) / 2))


def _score(task: GeometrySet, metric: str, value: float, items: int, details: dict[str, float]) -> Score:
    return Score(f"{task.name}, {metric}", metric, value, items, details, lower_is_better=True)
