"""Compare how two models rank the same texts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

Matrix = npt.NDArray[np.float64]

NEIGHBORS = 10
MIN_TEXTS = NEIGHBORS + 2
"""The number of texts from which on the ten nearest of each say something."""
# The memory for all pairs grows with the square of the number of texts, and more texts do not change the result.
_MAX_TEXTS = 1000
_DIGITS = 6  # further digits are rounding errors, which would order equal texts or pairs at random


class RankAgreement(NamedTuple):
    """The agreement of two models' rankings.

    Attributes:
        spearman: Spearman's correlation between the two models' cosines of all pairs of texts, 0 if they are all equal
            by the second model alone; None with fewer than three pairs, or if they are all equal by the first model.
        top_10_overlap: The mean share of a text's ten nearest neighbors that both models agree on; None with fewer
            than twelve texts.
    """

    spearman: float | None
    top_10_overlap: float | None


def rank_agreement(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> RankAgreement:
    """Compare two models' cosines between all pairs of the same texts; of more than 1,000 texts, some are skipped.

    Args:
        first: The embeddings by the reference model, (texts, dimension).
        second: The embeddings by the other model, (texts, another dimension), in the same order.

    Returns:
        The agreement; both values are None if an embedding is not finite.
    """
    step = math.ceil(len(first) / _MAX_TEXTS)
    cosines = [(rows @ rows.T).round(_DIGITS) for rows in map(normalize_rows, (first[::step], second[::step]))]
    if not all(np.isfinite(values).all() for values in cosines):
        return RankAgreement(None, None)
    return RankAgreement(_spearman(*cosines), _overlap(*cosines))


def normalize_rows(vectors: npt.NDArray[Any]) -> Matrix:
    """Return rows of length 1 in float64. Rows of zeros stay zero, rows that are not finite become NaN."""
    rows = np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors.astype(np.float64), np.nan)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    normalized: Matrix = rows / np.where(norms == 0, 1, norms)
    return normalized


def _spearman(first: Matrix, second: Matrix) -> float | None:
    pairs = np.triu_indices(len(first), k=1)
    if len(pairs[0]) < 3 or not np.ptp(first[pairs]):
        return None
    if not np.ptp(second[pairs]):
        return 0.0
    return float(spearmanr(first[pairs], second[pairs]).statistic)


def _overlap(first: Matrix, second: Matrix) -> float | None:
    if len(first) < MIN_TEXTS:
        return None
    pairs = zip(_nearest(first), _nearest(second), strict=True)
    return float(np.mean([len(set(one) & set(other)) / NEIGHBORS for one, other in pairs]))


def _nearest(cosines: Matrix) -> list[list[int]]:
    """Return the ten nearest neighbors of each text, (texts, 10)."""
    others = cosines.copy()
    np.fill_diagonal(others, -np.inf)
    nearest: list[list[int]] = np.argsort(-others, axis=1, kind="stable")[:, :NEIGHBORS].tolist()
    return nearest
