"""Semantic retrieval with a faiss IVF index: MRR@10, search time and memory (HPD, Zhao et al. 2022, table 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from edgeembed_bench.render.tables import Table, fixed
from edgeembed_bench.stats import Quartiles

from edgeembed.evaluation.encoders import SentenceEncoder, encode_texts
from edgeembed.evaluation.layout import Cell, Columns, detail, first_scores, percent, reference_name, table
from edgeembed.evaluation.model_evaluation import Rows
from edgeembed.evaluation.retrieval_set import RetrievalSet, read_retrieval
from edgeembed.evaluation.scores import Score, ScoreComparison
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike, Setting
from edgeembed.papers.hpd.ivf import (
    NLIST,
    NPROBE,
    QUERIES,
    IVFIndex,
    choose_nlist,
    import_faiss,
    mean_reciprocal_rank,
    search_interleaved,
)

METRIC = "MRR@10 x100, faiss IVF"
TIME = f"ms for {QUERIES:,} queries"
MEMORY = "index MB"


@dataclass(frozen=True)
class SemanticRetrievalSet:
    """A retrieval set that is searched with an IVF index.

    Attributes:
        retrieval: The set. Each query is searched among all documents, itself included.
    """

    retrieval: RetrievalSet

    @property
    def name(self) -> str:
        """The set's name, and the kind of index."""
        return f"{self.retrieval.name}, IVF"

    @property
    def relevant(self) -> list[frozenset[int]]:
        """The indices of the relevant documents of each query."""
        indices = {key: index for index, key in enumerate(self.retrieval.documents)}
        return [frozenset(indices[key] for key in self.retrieval.relevant[query]) for query in self.retrieval.queries]


@TASKS.register("semantic-retrieval")
class SemanticRetrieval(EvaluationTask):
    """Retrieval with a faiss IVF index: what fewer dimensions save in time and memory.

    Args:
        sources: Folders or files as `read_retrieval` takes them, or sets that were read.
        nlist: Number of inverted lists; reduced where a list would hold fewer than 39 documents.
        nprobe: Number of lists searched per query.

    Raises:
        InputError: If a set cannot be read.
        MissingExtraError: If faiss is not installed.
    """

    metavar = "DIR|FILE"
    help = "As --retrieval, searched with a faiss IVF index: MRR@10, time of 1,000 queries, memory (HPD, table 3)."
    measures_time = True

    def __init__(
        self,
        *sources: PathLike | RetrievalSet,
        nlist: Annotated[int, Setting("Inverted lists of that index.", minimum=1)] = NLIST,
        nprobe: Annotated[int, Setting("Lists searched per query.", minimum=1)] = NPROBE,
    ) -> None:
        self.check_settings(nlist=nlist, nprobe=nprobe)
        self._nlist, self._nprobe = nlist, nprobe
        self._indexes: list[IVFIndex] = []
        items = self.check_sources(sources, RetrievalSet)
        sets = [item if isinstance(item, RetrievalSet) else read_retrieval(Path(item)) for item in items]
        self.sets = [SemanticRetrievalSet(each) for each in sets]
        import_faiss()

    def score(self, encoder: SentenceEncoder, data: SemanticRetrievalSet) -> list[Score]:
        """Build an IVF index of an encoder, and score it without times, which `complete` adds.

        Args:
            encoder: The encoder.
            data: Queries and documents.

        Returns:
            MRR@10 x100; details: the dimension of an embedding, the size of the index in megabytes (10^6 bytes), the
            number of documents, and the settings of the index.

        Raises:
            CheckError: If embeddings are not finite.
        """
        queries, documents = data.retrieval.queries, data.retrieval.documents
        nlist = choose_nlist(len(documents), self._nlist)
        index = IVFIndex(
            encode_texts(encoder.encode_query, list(queries.values())),
            encode_texts(encoder.encode_document, list(documents.values())),
            nlist=nlist,
            nprobe=self._nprobe,
        )
        self._indexes.append(index)
        details: dict[str, float] = {
            "dimension": index.dimension,
            MEMORY: index.size_bytes / 1e6,
            "documents": len(documents),
            "nlist": nlist,
            "nprobe": self._nprobe,
        }
        value = 100 * mean_reciprocal_rank(index.search(), data.relevant)
        return [Score(data.name, METRIC, value, len(queries), details)]

    def complete(self, scores: Mapping[str, Sequence[Score]]) -> dict[str, list[Score]]:
        """Add the milliseconds for 1,000 queries: the indexes of all models take turns on one thread."""
        count = len(self.sets)
        indexes = self._indexes[-count * len(scores) :]  # an earlier run may have failed halfway
        by_model = {name: indexes[place * count : (place + 1) * count] for place, name in enumerate(scores)}
        self._indexes = []
        timed: dict[str, list[Score]] = {name: [] for name in scores}
        for number in range(count):
            times_ms = search_interleaved({name: indexes[number] for name, indexes in by_model.items()})
            for name, samples in times_ms.items():
                time_ms = Quartiles.of(samples)
                times = {
                    TIME: time_ms.median,
                    f"{TIME}, first quartile": time_ms.q1,
                    f"{TIME}, third quartile": time_ms.q3,
                }
                score = scores[name][number]
                timed[name].append(replace(score, details=score.details | times))
        return timed

    @classmethod
    def tables(cls, rows: Rows) -> list[Table]:
        """Return table 3 of HPD, for each set."""
        return [_table(rows, at) for at in range(len(first_scores(rows)))]


def reduction_factor(comparison: ScoreComparison, name: str) -> float:
    """Return the reference's time or memory divided by the model's.

    Args:
        comparison: The scores of a semantic retrieval set.
        name: `TIME` or `MEMORY`.
    """
    return comparison.reference.details[name] / comparison.score.details[name]


def _table(rows: Rows, at: int) -> Table:
    score, reference = first_scores(rows)[at], reference_name(rows)
    columns: Columns = {
        "dim": lambda model: f"{model.scores[at].details['dimension']:.0f}",
        "MRR@10": lambda model: fixed(model.scores[at].value / 100, 3),
    }
    if reference is not None:
        columns["%"] = percent(at)
    for title, name, decimals in (("time", TIME, 1), ("mem", MEMORY, 2)):
        columns[f"{title} {'ms' if name == TIME else 'MB'}"] = detail(at, name, decimals)
        if reference is not None:
            columns[title] = _factor(at, name)
    details = score.details
    legends = [
        (
            f"{score.items:,} queries in {details['documents']:,} documents; faiss IVF on the CPU, "
            f"nlist {details['nlist']}, nprobe {details['nprobe']}"
        ),
        "time ms: 1,000 queries in one batch on one thread, without encoding, median of ten",
        "mem MB: size of the index, 10^6 bytes",
        *([] if reference is None else [f"%: MRR@10 in percent of {reference}'s; x: {reference}'s divided by this"]),
    ]
    return table(f"Semantic retrieval, {score.task.removesuffix(', IVF')}", rows, columns, legends)


def _factor(at: int, name: str) -> Cell:
    return lambda model: f"{reduction_factor(model.comparisons[at], name):.1f}x"
