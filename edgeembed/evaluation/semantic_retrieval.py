"""Semantic retrieval as HPD's table 3 measures it: MRR@10, time for 1,000 queries and memory of a faiss IVF index."""

from collections.abc import Sequence
from dataclasses import dataclass

from edgeembed_bench.paper_tables.hpd import (
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

from edgeembed.evaluation.encoders import SentenceEncoder, vectors
from edgeembed.evaluation.retrieval import RetrievalSet
from edgeembed.evaluation.scores import Comparison, Score

METRIC = "MRR@10 x100, faiss IVF"
TIME = f"ms for {QUERIES:,} queries"
MEMORY = "index MB"


@dataclass(frozen=True)
class ListSettings:
    """How the documents are shared out over inverted lists.

    Attributes:
        nlist: Lists; where a list would hold fewer than 39 documents, as many fewer lists.
        nprobe: Lists searched for a query.
    """

    nlist: int = NLIST
    nprobe: int = NPROBE


@dataclass(frozen=True)
class Savings:
    """What a smaller vector saves in retrieval.

    Attributes:
        task: Where.
        times_faster: The reference's time for 1,000 queries, as a multiple of the model's.
        times_smaller: The reference's index, as a multiple of the model's.
    """

    task: str
    times_faster: float
    times_smaller: float


def search_task(found: RetrievalSet) -> RetrievalTask:
    """Give a retrieval set as the bench takes it.

    Args:
        found: What `read_retrieval` gave.
    """
    places = {key: place for place, key in enumerate(found.documents)}
    return RetrievalTask(
        found.name,
        tuple(found.queries.values()),
        tuple(found.documents.values()),
        tuple(frozenset(places[key] for key in found.relevant[query]) for query in found.queries),
    )


def index_documents(encoder: SentenceEncoder, task: RetrievalTask, lists: ListSettings) -> IVFIndex:
    """Encode a task and put its documents into inverted lists.

    Args:
        encoder: What to score.
        task: Queries and documents.
        lists: The settings of the index.

    Raises:
        CheckError: If the encoder gives vectors that are not finite.
        MissingExtraError: If faiss is not installed.
    """
    return IVFIndex(
        vectors(encoder.encode_query, list(task.queries)),
        vectors(encoder.encode_document, list(task.documents)),
        nlist=choose_nlist(len(task.documents), lists.nlist),
        nprobe=lists.nprobe,
    )


def score_searches(indexes: dict[str, IVFIndex], task: RetrievalTask, lists: ListSettings) -> dict[str, Score]:
    """Search with each encoder's vectors, by turns on one thread of the processor.

    Args:
        indexes: What `index_documents` gave, by the encoder's name.
        task: Queries and documents.
        lists: The settings of the indexes.

    Returns:
        MRR@10 x100 by the encoder's name; among the details the median and quartiles of the milliseconds for 1,000
        queries, encoding not included, the megabytes (10^6 bytes) of the index, and the dimension of a vector.
    """
    return {name: _score(found, task, lists) for name, found in search_interleaved(indexes, task.relevant).items()}


def savings(comparisons: Sequence[Comparison]) -> tuple[Savings, ...]:
    """Give what a model saves in retrieval beside its reference.

    Args:
        comparisons: Scores beside the reference's; those of other tasks are passed over.
    """
    return tuple(
        Savings(each.score.task, times_less(each, TIME), times_less(each, MEMORY))
        for each in comparisons
        if each.score.metric == METRIC
    )


def times_less(comparison: Comparison, figure: str) -> float:
    """Give the reference's figure as a multiple of the model's.

    Args:
        comparison: Two scores of a semantic retrieval.
        figure: `TIME` or `MEMORY`.
    """
    return comparison.reference.details[figure] / comparison.score.details[figure]


def _score(found: SearchResult, task: RetrievalTask, lists: ListSettings) -> Score:
    time_ms = Quartiles.of(found.search_ms)
    details: dict[str, float] = {
        "dimension": found.dimension,
        TIME: time_ms.median,
        f"{TIME}, first quartile": time_ms.q1,
        f"{TIME}, third quartile": time_ms.q3,
        MEMORY: found.index_bytes / 1e6,
        "documents": len(task.documents),
        "nlist": choose_nlist(len(task.documents), lists.nlist),
        "nprobe": lists.nprobe,
    }
    return Score(f"{task.name}, IVF", METRIC, 100 * found.mrr_at_10, len(task.queries), details)
