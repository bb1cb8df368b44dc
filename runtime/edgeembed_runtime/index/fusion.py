"""Fuse rankings of the same documents into one."""

from collections.abc import Iterable, Sequence

RRF_K = 60
"""The constant of reciprocal rank fusion: the paper's, which found other values to differ little."""


def reciprocal_rank_fusion(rankings: Iterable[Sequence[int]]) -> dict[int, float]:
    """Return the documents that any ranking found, in descending order of their fused scores.

    The score of a document d is the sum, over the rankings that found it, of 1 / (60 + rank of d), where the best rank
    is 1: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning
    methods" (2009). A document that one ranking misses gets nothing from that one. Only ranks count, so the scores of
    the rankings need no common scale.

    Args:
        rankings: Distinct positions of documents, the best first. The rankings may differ in length.

    Returns:
        The score of each position, the highest first; ties are in ascending order of position. With two rankings, a
        score is at most 2 / 61 = 0.0328.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, position in enumerate(ranking, start=1):
            scores[position] = scores.get(position, 0.0) + 1 / (RRF_K + rank)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
