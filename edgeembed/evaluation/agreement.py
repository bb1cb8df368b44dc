"""Agreement: how much of one encoder's ranking another keeps, without any labels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import CheckError, InputError
from scipy.stats import spearmanr

Matrix = npt.NDArray[np.floating]

NEAREST = 10


@dataclass(frozen=True)
class Agreement:
    """How alike two encoders rank the same sentences.

    Attributes:
        kept_percent: Share of the teacher's ten nearest sentences that are among the student's ten nearest,
            mean over the queries, x100.
        spearman_percent: Spearman's correlation of the two encoders' cosines of a query with all others, mean
            over the queries, x100.
        sentences: Sentences ranked.
        queries: How many of them were queries.
    """

    kept_percent: float
    spearman_percent: float
    sentences: int
    queries: int


def ranking_agreement(teacher: Matrix, student: Matrix, *, queries: int | None = None) -> Agreement:
    """Measure how much of a teacher's ranking a student keeps.

    Args:
        teacher: (n, teacher dim) vectors of n sentences, best held out from training.
        student: (n, student dim) vectors of the same sentences in the same order.
        queries: The first so many sentences are queries, each ranked against all others; all if absent.

    Returns:
        The agreement.

    Raises:
        InputError: If the matrices do not hold the same sentences, or too few to have ten neighbours.
        CheckError: If an encoder gives a query the same cosine with every sentence, so that it ranks nothing.
    """
    sentences = len(teacher)
    count = sentences if queries is None else min(queries, sentences)
    if len(student) != sentences:
        raise InputError(f"{sentences} teacher and {len(student)} student vectors; expected one each a sentence")
    if sentences < NEAREST + 2 or count < 1:
        raise InputError(f"{count} queries, {sentences} sentences; expected at least 1 and {NEAREST + 2}")
    teacher, student = _normalised(teacher), _normalised(student)
    kept, correlations = [], []
    for query in range(count):
        first, second = _others(teacher, query), _others(student, query)
        if np.ptp(first) == 0 or np.ptp(second) == 0:
            raise CheckError(f"sentence {query} has the same cosine with all others; such vectors rank nothing")
        kept.append(len(_nearest(first) & _nearest(second)) / NEAREST)
        correlations.append(float(spearmanr(first, second).statistic))
    return Agreement(100 * float(np.mean(kept)), 100 * float(np.mean(correlations)), sentences, count)


def _normalised(vectors: Matrix) -> npt.NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    wide /= np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return wide


def _others(vectors: npt.NDArray[np.float64], query: int) -> npt.NDArray[np.float64]:
    """Cosines of one sentence with all others, (n - 1,)."""
    return np.delete(vectors @ vectors[query], query)


def _nearest(cosines: npt.NDArray[np.float64]) -> set[int]:
    return set(np.argsort(-cosines, kind="stable")[:NEAREST].tolist())
