"""Table 3 of HPD (2022): semantic retrieval through a faiss IVF index: MRR@10, time for 1,000 queries, index memory."""

from collections.abc import Sequence

from edgeembed_bench.inverted_lists import (
    FEWEST_A_LIST,
    NLIST,
    NPROBE,
    QUERIES,
    REPEATS,
    ListIndex,
    RetrievalTask,
    import_faiss,
    lists_for,
    search_by_turns,
)
from edgeembed_bench.paper_tables.base import PaperTable
from edgeembed_bench.paper_tables.measuring import opened
from edgeembed_bench.stats import Quartiles
from edgeembed_bench.subjects import Subject


def hpd_table(subjects: Sequence[Subject], task: RetrievalTask, *, threads: int = 1, seed: int = 0) -> PaperTable:
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
    import_faiss()
    nlist = lists_for(len(task.documents))
    with opened(subjects, task.queries[0], threads, "hpd", "HPD, table 3: semantic retrieval") as all_of_them:
        indexes = {
            name: ListIndex(
                worker.encode(task.queries, "query"),
                worker.encode(task.documents, "document"),
                nlist=nlist,
                nprobe=NPROBE,
                threads=threads,
            )
            for name, worker in all_of_them.workers.items()
        }
        searched = search_by_turns(indexes, task.relevant, seed=seed)
    rows, samples = [], {}
    for name, each in searched.items():
        search = Quartiles.of(each.search_ms)
        figures = (f"{each.mrr_at_10:.3f}", f"{search.median:.1f}", f"{search.q1:.1f} to {search.q3:.1f}")
        rows.append((name, str(each.dimension), *figures, f"{each.index_bytes / 1e6:.2f}"))
        samples[name] = {
            "mrr_at_10": each.mrr_at_10,
            "search_ms": list(each.search_ms),
            "index_bytes": each.index_bytes,
        }
    return all_of_them.frame(
        columns=("model", "dim", "MRR@10", "time (ms for 1,000 queries)", "quartiles", "mem (MB)"),
        rows=tuple(rows),
        notes=(
            (
                f"{len(task.queries):,} queries in {len(task.documents):,} documents of {task.name}; faiss IVF on the "
                f"CPU, inner product of unit vectors, nlist {nlist} (the paper: {NLIST}; at most a list for every "
                f"{FEWEST_A_LIST} documents), nprobe {NPROBE}"
            ),
            (
                f"time: searching alone, without encoding, {QUERIES:,} queries at once (repeated in order where there "
                f"are fewer), the median of {REPEATS}; {threads} thread(s). mem: the index, serialized"
            ),
        ),
        samples=samples,
    )
