"""Find the documents of an index by keywords, alone (BM25) or together with embeddings (hybrid search)."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.index.candidates import Positions
from edgeembed_runtime.index.collection import Collection
from edgeembed_runtime.index.nearest import nearest_documents
from edgeembed_runtime.index.ranking import Ranking, Selection
from edgeembed_runtime.index.rows import IndexRows

RRF_K = 60
"""The constant of reciprocal rank fusion: the paper's, which found other values to differ little."""
HIGHEST_FUSED_SCORE = 2 / (RRF_K + 1)
"""The score of a document that comes first by embeddings and by keywords."""
# The number of documents of each ranking that are fused: that of the runs in the paper on reciprocal rank fusion.
_FUSED_DOCUMENTS = 1000
# The cosine similarity of a document whose text is blank or unknown to the encoder: only keywords find it.
_NO_MEANING = -1


def keyword_documents(
    collection: Collection, queries: Sequence[str], top_k: int | None, selection: Selection | None
) -> Iterator[Ranking]:
    """Yield the documents that share words with each query, ranked by the BM25 score of their best passage.

    Args:
        collection: The documents.
        queries: The texts of the queries.
        top_k: The maximum number of documents per query; None means all that share a word with it.
        selection: The documents to search; None means all. The weight of a word is that in all documents.

    Raises:
        InputError: If a mapped file was truncated.
        MissingExtraError: If bm25s is not installed.
    """
    rows = collection.checked_rows() if selection is None else selection.rows
    for query in queries:
        yield _keyword_ranking(collection, rows, query, top_k, selection)


def hybrid_documents(
    collection: Collection,
    queries: Sequence[str],
    vectors: npt.NDArray[np.float32],
    top_k: int | None,
    selection: Selection | None,
) -> Iterator[Ranking]:
    """Yield the documents for each query, ranked by reciprocal rank fusion of embeddings and keywords.

    The first 1,000 documents of each ranking are fused, or the first `top_k` if that is more.

    Args:
        collection: The documents.
        queries: The texts of the queries.
        vectors: Their embeddings, (queries, dimension) float32, L2-normalized; zero for a query that the encoder does
            not know, whose documents are ranked by keywords alone.
        top_k: The maximum number of documents per query; None means all.
        selection: The documents to search; None means all.

    Raises:
        InputError: If a mapped file was truncated, or a vector is not finite.
        MissingExtraError: If bm25s is not installed.
    """
    depth = None if top_k is None else max(top_k, _FUSED_DOCUMENTS)
    rankings = nearest_documents(collection, vectors, depth, selection)
    for query, vector, nearest in zip(queries, vectors, rankings, strict=True):
        keywords = _keyword_ranking(collection, nearest.rows, query, depth, selection)
        meaningful = nearest.positions[(nearest.scores > _NO_MEANING) & vector.any()]
        yield _fuse(nearest.rows, [meaningful, keywords.positions], top_k)


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


def _keyword_ranking(
    collection: Collection, rows: IndexRows, query: str, top_k: int | None, selection: Selection | None
) -> Ranking:
    scores = collection.bm25(rows).scores(query)
    searched = np.arange(len(scores)) if selection is None else selection.positions
    positions = searched[scores[searched] > 0]
    return Ranking.of_best_passages(rows, positions, scores[positions], top_k)


def _fuse(rows: IndexRows, rankings: Sequence[Positions], top_k: int | None) -> Ranking:
    """Fuse rankings of documents. A document's passage is that of the ranking in which its rank is the best."""
    documents = [rows.documents[positions].tolist() for positions in rankings]
    fused = dict(list(reciprocal_rank_fusion(documents).items())[:top_k])
    best: dict[int, tuple[int, int]] = {}
    for positions, ranked in zip(rankings, documents, strict=True):
        for rank, (document, row) in enumerate(zip(ranked, positions.tolist(), strict=True)):
            if document not in best or rank < best[document][0]:
                best[document] = (rank, row)
    passages = np.array([best[document][1] for document in fused], dtype=np.intp)
    return Ranking(rows, passages, np.array(list(fused.values())))
