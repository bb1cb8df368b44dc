"""Measure how much of one encoder's ranking another keeps, without labels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from edgeembed_exporters.rank_agreement import NEIGHBORS, normalize_rows
from edgeembed_runtime.errors import CheckError, InputError
from scipy.stats import spearmanr

Matrix = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Agreement:
    """How alike two encoders rank the same sentences.

    Attributes:
        kept_percent: Share of the teacher's ten nearest sentences that are among the student's ten nearest, mean over
            the queries, x100.
        spearman_percent: Spearman's correlation of the two encoders' cosines of a query with all others, mean over the
            queries, x100.
        sentences: Number of sentences ranked.
        queries: How many of them were queries.
    """

    kept_percent: float
    spearman_percent: float
    sentences: int
    queries: int


def ranking_agreement(teacher: Matrix, student: Matrix, *, queries: int | None = None) -> Agreement:
    """Measure how much of a teacher's ranking a student keeps, query by query.

    `edgeembed_exporters.rank_agreement` compares all pairs at once, which takes memory by the square of the sentences.

    Args:
        teacher: Embeddings (n, teacher dim) of n sentences, preferably held out from training.
        student: Embeddings (n, student dim) of the same sentences in the same order.
        queries: Number of sentences, from the first, that are ranked against all others; None ranks all.

    Raises:
        InputError: If the matrices do not have the same number of sentences, or too few for ten neighbors.
        CheckError: If an encoder returns the same cosine of a query with every sentence, so that it ranks nothing.
    """
    sentences = len(teacher)
    count = sentences if queries is None else min(queries, sentences)
    if len(student) != sentences:
        raise InputError(
            f"there are {sentences} teacher and {len(student)} student vectors; expected one of each per sentence"
        )
    if sentences < NEIGHBORS + 2 or count < 1:
        raise InputError(
            f"there are {count} queries and {sentences} sentences; expected at least 1 and {NEIGHBORS + 2}"
        )
    teacher, student = normalize_rows(teacher), normalize_rows(student)
    kept, correlations = [], []
    for query in range(count):
        first, second = _cosines(teacher, query), _cosines(student, query)
        if np.ptp(first) == 0 or np.ptp(second) == 0:
            raise CheckError(f"sentence {query} has the same cosine with all others; such vectors rank nothing")
        kept.append(len(_nearest(first) & _nearest(second)) / NEIGHBORS)
        correlations.append(float(spearmanr(first, second).statistic))
    return Agreement(100 * float(np.mean(kept)), 100 * float(np.mean(correlations)), sentences, count)


def _cosines(vectors: npt.NDArray[np.floating], query: int) -> npt.NDArray[np.floating]:
    """Return the cosines of one sentence with all others, (n - 1,)."""
    return np.delete(vectors @ vectors[query], query)


def _nearest(cosines: npt.NDArray[np.floating]) -> set[int]:
    return set(np.argsort(-cosines, kind="stable")[:NEIGHBORS].tolist())
