"""A faiss IVF index of an encoder's embeddings: MRR@10, search time and size (HPD, Zhao et al. 2022, table 3)."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from edgeembed_bench.schedule import shuffled_orders
from edgeembed_runtime.errors import MissingExtraError
from edgeembed_runtime.similarity import normalize

Matrix = npt.NDArray[np.float32]

NLIST = 1024
NPROBE = 5
QUERIES = 1000
REPEATS = 10
MIN_DOCUMENTS_PER_LIST = 39
"""faiss warns about too few training points below this number."""
_TOP_K = 10


class IVFIndex:
    """A faiss IVF index of an encoder's document embeddings, with its query embeddings.

    Args:
        queries: Query embeddings, shape (n, dim); normalized here.
        documents: Document embeddings, shape (m, dim); normalized here.
        nlist: Number of inverted lists, see `choose_nlist`.
        nprobe: Number of lists searched per query.
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
        normalized = normalize(documents)
        with _faiss_threads(threads):
            self._index.train(normalized)
            self._index.add(normalized)
        self._index.nprobe = nprobe
        self.dimension = dimension
        self.size_bytes = int(faiss.serialize_index(self._index).nbytes)

    def time_search_ms(self) -> float:
        """Return the milliseconds of one search for 1,000 queries; fewer queries are repeated in order."""
        queries = np.resize(self._queries, (QUERIES, self.dimension))
        with _faiss_threads(self._threads):
            start_s = time.perf_counter()
            self._index.search(queries, _TOP_K)
            return (time.perf_counter() - start_s) * 1e3

    def search(self) -> npt.NDArray[np.int64]:
        """Return the indices of the top ten documents of each query, shape (n, 10); -1 if there are fewer."""
        with _faiss_threads(self._threads):
            indices: npt.NDArray[np.int64] = self._index.search(self._queries, _TOP_K)[1]
        return indices


def import_faiss() -> Any:
    """Return the faiss module.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise MissingExtraError("faiss", "faiss", "edgeembed-runtime") from error
    return faiss


def choose_nlist(documents: int, nlist: int = NLIST) -> int:
    """Return the number of inverted lists: the requested number, but at most one per 39 documents.

    Args:
        documents: Number of documents.
        nlist: Requested number of lists.
    """
    return max(1, min(nlist, documents // MIN_DOCUMENTS_PER_LIST))


def search_interleaved(indexes: Mapping[str, IVFIndex], *, seed: int = 0) -> dict[str, list[float]]:
    """Search all indexes in turn, in a new shuffled order for each repetition, after one warm-up.

    Args:
        indexes: Indexes of the same set, by the encoder's name.
        seed: Seed of the orders.

    Returns:
        Milliseconds for 1,000 queries, for each of ten repetitions, by the encoder's name.
    """
    times_ms: dict[str, list[float]] = {name: [] for name in indexes}
    for names in shuffled_orders(indexes, REPEATS + 1, seed):
        for name in names:
            times_ms[name].append(indexes[name].time_search_ms())
    return {name: times[1:] for name, times in times_ms.items()}


def mean_reciprocal_rank(retrieved: npt.NDArray[np.int64], relevant: Sequence[frozenset[int]]) -> float:
    """Return the mean over queries of 1 / rank of the first relevant document, computed by sentence-transformers.

    Args:
        retrieved: Indices of the retrieved documents, shape (queries, k), best first; -1 for none.
        relevant: Indices of the relevant documents of each query, at least one.
    """
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    k = retrieved.shape[1]
    queries = {str(number): "" for number in range(len(relevant))}
    relevant_ids = {str(number): {str(index) for index in indices} for number, indices in enumerate(relevant)}
    evaluator = InformationRetrievalEvaluator(queries, {}, relevant_ids, mrr_at_k=[k], write_csv=False)
    hits = [
        [{"corpus_id": str(index), "score": -rank} for rank, index in enumerate(row) if index >= 0]
        for row in retrieved.tolist()
    ]
    return float(evaluator.compute_metrics(hits)["mrr@k"][k])


@contextlib.contextmanager
def _faiss_threads(count: int) -> Iterator[None]:
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
