"""Exact search over a retrieval set, and its metrics by sentence-transformers."""

from dataclasses import dataclass
from typing import Any

from edgeembed.evaluation.encoders import SentenceEncoder, encode_texts
from edgeembed.evaluation.retrieval_set import RetrievalSet

Metrics = dict[str, dict[int, Any]]
"""Metrics of sentence-transformers' evaluator, 0 to 1, by name ("accuracy@k", "recall@k", "mrr@k", ...) and by k."""


@dataclass(frozen=True)
class RankingMetrics:
    """Metrics of an exact search.

    Attributes:
        mean: Over all queries.
        by_query: Of each query alone, in the order of the set.
    """

    mean: Metrics
    by_query: tuple[Metrics, ...]

    def values(self, name: str, k: int) -> list[float]:
        """Return a metric of each query, 0 to 1."""
        return [float(metrics[name][k]) for metrics in self.by_query]


def rank(encoder: SentenceEncoder, task: RetrievalSet) -> RankingMetrics:
    """Search a set exactly by cosine similarity, scored by sentence-transformers' `InformationRetrievalEvaluator`.

    A query does not find itself, if it is also a document; see `RetrievalSet.is_ranked`.

    Args:
        encoder: The encoder.
        task: The retrieval set.

    Raises:
        CheckError: If embeddings are not finite.
    """
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
    from sentence_transformers.util import cos_sim

    by_query: list[Metrics] = []

    class Evaluator(InformationRetrievalEvaluator):  # type: ignore[misc]  # no types
        queries_ids: list[str]
        queries: list[str]

        def compute_metrics(self, hits_by_query: list[list[dict[str, Any]]]) -> Any:
            ids, texts = self.queries_ids, self.queries
            ranked = [
                [hit for hit in hits if task.is_ranked(query, hit["corpus_id"])]
                for query, hits in zip(ids, hits_by_query, strict=True)
            ]
            for query, text, hits in zip(ids, texts, ranked, strict=True):
                self.queries_ids, self.queries = [query], [text]
                by_query.append(super().compute_metrics([hits]))
            self.queries_ids, self.queries = ids, texts
            return super().compute_metrics(ranked)

    evaluator = Evaluator(
        task.queries,
        task.documents,
        task.relevant,
        precision_recall_at_k=[10, 100, 101],  # 101 hits, of which the query itself may be one
        map_at_k=[100],
        write_csv=False,
        score_functions={"cosine": cos_sim},
    )
    mean: Metrics = evaluator.compute_all_metrics(_EvaluatorModel(encoder))["cosine"]
    return RankingMetrics(mean, tuple(by_query))


class _EvaluatorModel:
    """Adapts an encoder to the evaluator, which passes options that only torch models take."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder

    def encode_query(self, texts: list[str], **_: Any) -> Any:
        return encode_texts(self._encoder.encode_query, texts)

    def encode_document(self, texts: list[str], **_: Any) -> Any:
        return encode_texts(self._encoder.encode_document, texts)
