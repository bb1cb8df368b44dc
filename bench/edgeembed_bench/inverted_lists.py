"""Search in a faiss index of inverted lists, as HPD's table 3 measures it: MRR@10, time for 1,000 queries, memory."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import MissingExtraError
from edgeembed_runtime.similarity import normalize

from edgeembed_bench.schedule import shuffled_orders

Matrix = npt.NDArray[np.float32]

NLIST = 1024
NPROBE = 5
QUERIES = 1000
REPEATS = 10
FEWEST_A_LIST = 39
"""Below that faiss finds too few points to train a list's center on."""
_DEPTH = 10


@dataclass(frozen=True)
class RetrievalTask:
    """Queries, documents, and which answers which.

    Attributes:
        name: What it is called.
        queries: Texts.
        documents: Texts.
        relevant: For each query the places of the documents that answer it, one or more.
    """

    name: str
    queries: tuple[str, ...]
    documents: tuple[str, ...]
    relevant: tuple[frozenset[int], ...]


@dataclass(frozen=True)
class Searched:
    """What searching with one encoder's vectors gave.

    Attributes:
        dimension: Numbers a vector.
        mrr_at_10: Mean over the queries of 1 / rank of the first document that answers, 0 where none of ten does.
        search_ms: Milliseconds for 1,000 queries, each repetition.
        index_bytes: Size of the index, serialized.
    """

    dimension: int
    mrr_at_10: float
    search_ms: tuple[float, ...]
    index_bytes: int


class ListIndex:
    """An encoder's documents in inverted lists, and its queries.

    Args:
        queries: (n, dim) vectors of a task's queries; of any length, for cosines are compared.
        documents: (m, dim) vectors of its documents.
        nlist: Lists, as `lists_for` gives them.
        nprobe: Lists searched for a query.
        threads: Threads of faiss.

    Raises:
        MissingExtraError: If faiss is not installed.
    """

    def __init__(self, queries: Matrix, documents: Matrix, *, nlist: int, nprobe: int, threads: int = 1) -> None:
        faiss = import_faiss()
        self._queries = normalize(queries)
        self._threads = threads
        dimension = documents.shape[1]
        self._index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimension), dimension, nlist, faiss.METRIC_INNER_PRODUCT)
        rows = normalize(documents)
        with _threads(threads):
            self._index.train(rows)
            self._index.add(rows)
        self._index.nprobe = nprobe
        self.dimension = dimension
        self.size_bytes = int(faiss.serialize_index(self._index).nbytes)

    def search_ms(self) -> float:
        """Time 1,000 queries at once; the queries are repeated in order where there are fewer."""
        asked = np.resize(self._queries, (QUERIES, self.dimension))
        with _threads(self._threads):
            begun = time.perf_counter()
            self._index.search(asked, _DEPTH)
            return (time.perf_counter() - begun) * 1e3

    def found(self) -> npt.NDArray[np.int64]:
        """Give the places of the ten nearest documents of each query, (n, 10); -1 where fewer were found."""
        with _threads(self._threads):
            places: npt.NDArray[np.int64] = self._index.search(self._queries, _DEPTH)[1]
        return places


def import_faiss() -> Any:
    """Give the faiss module.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise MissingExtraError("faiss", "faiss", "edgeembed-runtime") from error
    return faiss


def lists_for(documents: int, nlist: int = NLIST) -> int:
    """Give how many lists so many documents fill: those asked for, but at most one for every 39 documents.

    Args:
        documents: How many there are.
        nlist: Lists asked for.
    """
    return max(1, min(nlist, documents // FEWEST_A_LIST))


def search_by_turns(
    indexes: Mapping[str, ListIndex], relevant: Sequence[frozenset[int]], *, seed: int = 0
) -> dict[str, Searched]:
    """Search with each encoder's vectors, in a shuffled order that is new for each repetition.

    Args:
        indexes: The encoders' indexes of the same task, by the encoder's name.
        relevant: For each query the places of the documents that answer it.
        seed: Decides the orders.

    Returns:
        What each gave, by name. A first repetition does not count.
    """
    times_ms: dict[str, list[float]] = {name: [] for name in indexes}
    for names in shuffled_orders(indexes, REPEATS + 1, seed):
        for name in names:
            times_ms[name].append(indexes[name].search_ms())
    return {
        name: Searched(
            index.dimension,
            mean_reciprocal_rank(index.found(), relevant),
            tuple(times_ms[name][1:]),
            index.size_bytes,
        )
        for name, index in indexes.items()
    }


def mean_reciprocal_rank(found: npt.NDArray[np.int64], relevant: Sequence[frozenset[int]]) -> float:
    """Give the mean over queries of 1 / rank of the first document that answers, by sentence-transformers.

    Args:
        found: (queries, k) places of the documents found, best first; -1 for none.
        relevant: For each query the places of the documents that answer it, one or more.
    """
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    depth = found.shape[1]
    queries = {str(number): "" for number in range(len(relevant))}
    wanted = {str(number): {str(place) for place in places} for number, places in enumerate(relevant)}
    evaluator = InformationRetrievalEvaluator(queries, {}, wanted, mrr_at_k=[depth], write_csv=False)
    hits = [
        [{"corpus_id": str(place), "score": -rank} for rank, place in enumerate(places) if place >= 0]
        for places in found.tolist()
    ]
    return float(evaluator.compute_metrics(hits)["mrr@k"][depth])


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
