"""Table 3 of HPD (2022): semantic retrieval through a faiss IVF index: MRR@10, time for 1,000 queries, index memory."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import MissingExtraError
from edgeembed_runtime.vectors import unit

from edgeembed_bench.estimates import spread
from edgeembed_bench.forms.filled import FilledForm
from edgeembed_bench.forms.measuring import opened
from edgeembed_bench.interleaving import shuffled
from edgeembed_bench.subjects import Subject

NLIST = 1024
NPROBE = 5
_DEPTH = 10
_QUERIES = 1000
_REPEATS = 10
_FEWEST_A_LIST = 39  # below that faiss finds too few points to train a list's centre on


@dataclass(frozen=True)
class RetrievalTask:
    """Queries, documents, and which answers which.

    Attributes:
        name: What it is called.
        queries: Texts.
        documents: Texts.
        relevant: For each query the places of the documents that answer it.
    """

    name: str
    queries: tuple[str, ...]
    documents: tuple[str, ...]
    relevant: tuple[frozenset[int], ...]


def hpd_form(subjects: Sequence[Subject], task: RetrievalTask, *, threads: int = 1, seed: int = 0) -> FilledForm:
    """Fill in table 3.

    Args:
        subjects: The rows.
        task: What is searched for and in. The paper's is Quora's duplicate questions, question1 in all of question2.
        threads: Threads for encoding and for faiss.
        seed: Decides the order of turns.

    Returns:
        The form, with the times of each repetition.

    Raises:
        InputError: If there are no subjects, or names are not unique.
        CheckError: If a subject fails.
        MissingExtraError: If faiss is not installed.
    """
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise MissingExtraError("faiss", "faiss") from error
    nlist = max(1, min(NLIST, len(task.documents) // _FEWEST_A_LIST))
    faiss.omp_set_num_threads(threads)
    with opened(subjects, task.queries[0], threads, "hpd", "HPD, table 3: semantic retrieval") as all_of_them:
        encoded = {
            name: (unit(worker.encode(task.queries, "query")), unit(worker.encode(task.documents, "document")))
            for name, worker in all_of_them.workers.items()
        }
        indexes = {name: _index(faiss, documents, nlist) for name, (_, documents) in encoded.items()}
        times_ms: dict[str, list[float]] = {name: [] for name in encoded}
        for names in shuffled(encoded, _REPEATS + 1, seed):
            for name in names:
                times_ms[name].append(_search_ms(indexes[name], encoded[name][0]))
    rows, samples = [], {}
    for name, (queries, _) in encoded.items():
        _, found = indexes[name].search(queries, _DEPTH)
        mrr, counted = _mean_reciprocal_rank(found, task.relevant), times_ms[name][1:]
        size_bytes, search = int(faiss.serialize_index(indexes[name]).nbytes), spread(counted)
        quartiles = f"{search.q1:.1f} to {search.q3:.1f}"
        rows.append(
            (name, str(queries.shape[1]), f"{mrr:.3f}", f"{search.median:.1f}", quartiles, f"{size_bytes / 1e6:.2f}")
        )
        samples[name] = {"mrr_at_10": mrr, "search_ms": counted, "index_bytes": size_bytes}
    return all_of_them.frame(
        columns=("model", "dim", "MRR@10", "time (ms for 1,000 queries)", "quartiles", "mem (MB)"),
        rows=tuple(rows),
        notes=(
            (
                f"{len(task.queries):,} queries in {len(task.documents):,} documents of {task.name}; faiss IVF on the "
                f"CPU, inner product of unit vectors, nlist {nlist} (the paper: {NLIST}; at most a list for every "
                f"{_FEWEST_A_LIST} documents), nprobe {NPROBE}"
            ),
            (
                f"time: searching alone, without encoding, {_QUERIES:,} queries at once (repeated in order where there "
                f"are fewer), the median of {_REPEATS}; {threads} thread(s). mem: the index, serialized"
            ),
        ),
        samples=samples,
    )


def _index(faiss: Any, documents: npt.NDArray[np.float32], nlist: int) -> Any:
    dimension = documents.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimension), dimension, nlist, faiss.METRIC_INNER_PRODUCT)
    index.train(documents)
    index.add(documents)
    index.nprobe = NPROBE
    return index


def _search_ms(index: Any, queries: npt.NDArray[np.float32]) -> float:
    asked = np.resize(queries, (_QUERIES, queries.shape[1]))
    begun = time.perf_counter()
    index.search(asked, _DEPTH)
    return (time.perf_counter() - begun) * 1e3


def _mean_reciprocal_rank(found: npt.NDArray[np.int64], relevant: Sequence[frozenset[int]]) -> float:
    hits = np.array([[place in wanted for place in places] for places, wanted in zip(found, relevant, strict=True)])
    first = np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, np.inf)
    return float((1 / first).mean())
