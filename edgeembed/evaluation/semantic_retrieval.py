"""Semantic retrieval with a faiss IVF index: MRR@10, search time and memory (HPD, Zhao et al. 2022, table 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgeembed_bench.paper_tables.retrieval import (
    NLIST,
    NPROBE,
    QUERIES,
    IVFIndex,
    RetrievalTask,
    SearchResult,
    choose_nlist,
    search_interleaved,
)
from edgeembed_bench.stats import Quartiles

from edgeembed.evaluation.encoders import SentenceEncoder, encode_texts
from edgeembed.evaluation.retrieval import RetrievalSet
from edgeembed.evaluation.scores import Score, ScoreComparison

METRIC = "MRR@10 x100, faiss IVF"
TIME = f"ms for {QUERIES:,} queries"
MEMORY = "index MB"


@dataclass(frozen=True)
class IVFSettings:
    """Settings of the IVF index.

    Attributes:
        nlist: Number of inverted lists; reduced where a list would hold fewer than 39 documents.
        nprobe: Number of lists searched per query.
    """

    nlist: int = NLIST
    nprobe: int = NPROBE


@dataclass(frozen=True)
class SearchSavings:
    """Search time and index memory that a model saves, compared with the reference.

    Attributes:
        task: Name of the task.
        times_faster: The reference's time for 1,000 queries divided by the model's.
        times_smaller: The size of the reference's index divided by the model's.
    """

    task: str
    times_faster: float
    times_smaller: float


def make_retrieval_task(task: RetrievalSet) -> RetrievalTask:
    """Return a retrieval set in the form that the benchmark takes, with indices for ids."""
    indices = {key: index for index, key in enumerate(task.documents)}
    return RetrievalTask(
        task.name,
        tuple(task.queries.values()),
        tuple(task.documents.values()),
        tuple(frozenset(indices[key] for key in task.relevant[query]) for query in task.queries),
    )


def build_index(encoder: SentenceEncoder, task: RetrievalTask, settings: IVFSettings) -> IVFIndex:
    """Encode the queries and documents of a task and build an IVF index.

    Args:
        encoder: The encoder.
        task: Queries and documents.
        settings: The settings of the index.

    Raises:
        CheckError: If embeddings are not finite.
        MissingExtraError: If faiss is not installed.
    """
    return IVFIndex(
        encode_texts(encoder.encode_query, list(task.queries)),
        encode_texts(encoder.encode_document, list(task.documents)),
        nlist=choose_nlist(len(task.documents), settings.nlist),
        nprobe=settings.nprobe,
    )


def score_semantic_retrieval(
    indexes: Mapping[str, IVFIndex], task: RetrievalTask, settings: IVFSettings
) -> dict[str, Score]:
    """Search the indexes of several encoders, which take turns on one thread, and score them.

    Args:
        indexes: The index of each encoder, by the encoder's name.
        task: Queries and documents.
        settings: The settings of the indexes.

    Returns:
        MRR@10 x100 by the encoder's name; details: median and quartiles of the milliseconds for 1,000 queries without
        encoding, the size of the index in megabytes (10^6 bytes), and the dimension of an embedding.
    """
    results = search_interleaved(indexes, task.relevant)
    return {name: _score(result, task, settings) for name, result in results.items()}


def search_savings(comparisons: Sequence[ScoreComparison]) -> tuple[SearchSavings, ...]:
    """Return the search time and memory that a model saves, for each semantic retrieval task.

    Args:
        comparisons: Comparisons with the reference; those of other tasks are ignored.
    """
    return tuple(
        SearchSavings(each.score.task, reduction_factor(each, TIME), reduction_factor(each, MEMORY))
        for each in comparisons
        if each.score.metric == METRIC
    )


def reduction_factor(comparison: ScoreComparison, detail: str) -> float:
    """Return the reference's time or memory divided by the model's.

    Args:
        comparison: The scores of a semantic retrieval task.
        detail: `TIME` or `MEMORY`.
    """
    return comparison.reference.details[detail] / comparison.score.details[detail]


def _score(result: SearchResult, task: RetrievalTask, settings: IVFSettings) -> Score:
    time_ms = Quartiles.of(result.search_ms)
    details: dict[str, float] = {
        "dimension": result.dimension,
        TIME: time_ms.median,
        f"{TIME}, first quartile": time_ms.q1,
        f"{TIME}, third quartile": time_ms.q3,
        MEMORY: result.index_bytes / 1e6,
        "documents": len(task.documents),
        "nlist": choose_nlist(len(task.documents), settings.nlist),
        "nprobe": settings.nprobe,
    }
    return Score(f"{task.name}, IVF", METRIC, 100 * result.mrr_at_10, len(task.queries), details)
