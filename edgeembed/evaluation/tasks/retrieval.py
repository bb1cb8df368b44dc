"""Retrieval by exact search: nDCG@10, MRR@10, MAP@100 and recall, also over documents by another encoder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from edgeembed_bench.render.tables import Table, fixed
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.encoders import (
    CachingEncoder,
    EncoderLike,
    SentenceEncoder,
    encode_texts,
    encoder_fingerprint,
    encoder_name,
    find_encoder,
)
from edgeembed.evaluation.intervals import mean_interval, scaled
from edgeembed.evaluation.layout import INTERVAL_LEGEND, first_scores, fraction, percent, reference_name
from edgeembed.evaluation.model_evaluation import Rows
from edgeembed.evaluation.ranking import rank
from edgeembed.evaluation.retrieval_set import RetrievalSet, read_retrieval
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike, Setting

METRIC = "nDCG@10 x100"
MRR = "MRR@10 x100"
MAP = "MAP@100 x100"


class DocumentEncoder:
    """The encoder of the documents: loaded when it is first used; each text is encoded once for all models.

    Args:
        encoder: The encoder.

    Raises:
        InputError: If there is no such model.
    """

    def __init__(self, encoder: EncoderLike) -> None:
        self.name = encoder_name(encoder)
        self._encoder = encoder
        self._load = find_encoder(encoder)

    @cached_property
    def fingerprint(self) -> str | None:
        """The encoder's fingerprint, by which scores are kept; None for a loaded encoder."""
        return encoder_fingerprint(self._encoder)

    @cached_property
    def encoder(self) -> CachingEncoder:
        """The loaded encoder."""
        return CachingEncoder(self._load())

    @cached_property
    def dimension(self) -> int:
        """The dimension of an embedding."""
        return int(encode_texts(self.encoder.encode_document, ["a"]).shape[1])


@dataclass(frozen=True)
class AsymmetricRetrieval:
    """A retrieval set whose documents another model encodes, usually the teacher of the one that is evaluated.

    Attributes:
        retrieval: The set.
        documents_by: The encoder of the documents.
    """

    retrieval: RetrievalSet
    documents_by: DocumentEncoder

    @property
    def name(self) -> str:
        """The set's name, and that of the encoder of the documents."""
        return f"{self.retrieval.name}, documents by {self.documents_by.name}"


@TASKS.register("retrieval")
class Retrieval(EvaluationTask):
    """Retrieval by exact search over all documents.

    Args:
        sources: Folders or files as `read_retrieval` takes them, or sets that were read.
        documents_by: An encoder for the documents, usually the teacher: each set is scored a second time, with its
            documents by this encoder and the queries by each model. None for one score per set.

    Raises:
        InputError: If a set cannot be read, or there is no such encoder.
    """

    metavar = "DIR|FILE"
    help = (
        "BEIR folder: corpus.jsonl, queries.jsonl, qrels/test.tsv. Or a TSV of duplicate questions: question1, "
        "question2, is_duplicate. nDCG@10, MRR@10, MAP@100."
    )

    def __init__(
        self,
        *sources: PathLike | RetrievalSet,
        documents_by: Annotated[
            EncoderLike | None,
            Setting(
                "Also score with the documents by this model, usually the teacher, and the queries by each model.",
                metavar="MODEL|BUNDLE",
            ),
        ] = None,
    ) -> None:
        self.given = {}  # the data sets hold the encoder
        items = self.check_sources(sources, RetrievalSet)
        sets = [item if isinstance(item, RetrievalSet) else read_retrieval(Path(item)) for item in items]
        documents = [] if documents_by is None else [DocumentEncoder(documents_by)]
        self.sets: list[RetrievalSet | AsymmetricRetrieval] = [
            *sets,
            *(AsymmetricRetrieval(each, encoder) for encoder in documents for each in sets),
        ]

    def score(self, encoder: SentenceEncoder, data: RetrievalSet | AsymmetricRetrieval) -> list[Score]:
        """Score an encoder, see `score_retrieval` and `score_asymmetric_retrieval`."""
        if isinstance(data, AsymmetricRetrieval):
            return [score_asymmetric_retrieval(encoder, data)]
        return [score_retrieval(encoder, data)]

    def suits(self, data: RetrievalSet | AsymmetricRetrieval, dimension: int | None) -> bool:
        """Return whether queries of a dimension can be compared with the documents."""
        return not isinstance(data, AsymmetricRetrieval) or data.documents_by.dimension == dimension

    @classmethod
    def tables(cls, rows: Rows) -> list[Table]:
        """Return a table with a row per set and model."""
        return [retrieval_table("Retrieval", rows)]


def score_retrieval(encoder: SentenceEncoder, task: RetrievalSet) -> Score:
    """Score an encoder by exact search over all documents, ranked by cosine similarity.

    Args:
        encoder: The encoder.
        task: The retrieval set.

    Returns:
        nDCG@10 with binary relevance; details: MRR@10, MAP@100, recall@10 and recall@100; all x100. The average
        precision of a query is the mean of the precisions at the ranks of its relevant documents, where a document
        below rank 100 counts as 0.

    Raises:
        CheckError: If embeddings are not finite.
    """
    found = rank(encoder, task)
    details = {
        MRR: 100 * float(found.mean["mrr@k"][10]),
        MAP: 100 * float(found.mean["map@k"][100]),
        "recall@10 x100": 100 * float(found.mean["recall@k"][10]),
        "recall@100 x100": 100 * float(found.mean["recall@k"][100]),
    }
    interval = scaled(mean_interval(found.values("ndcg@k", 10)))
    value = 100 * float(found.mean["ndcg@k"][10])
    return Score(task.name, METRIC, value, len(task.queries), details, interval=interval)


def score_asymmetric_retrieval(encoder: SentenceEncoder, task: AsymmetricRetrieval) -> Score:
    """Score the queries of an encoder by exact search over documents that another model encoded.

    The scores are meaningful if both have one embedding space, as a student that learned its teacher's embeddings.

    Args:
        encoder: The encoder of the queries.
        task: The retrieval set, and the encoder of its documents.

    Returns:
        As `score_retrieval`.

    Raises:
        InputError: If the embeddings of the two encoders differ in dimension.
        CheckError: If embeddings are not finite.
    """
    documents, dimension = task.documents_by, encode_texts(encoder.encode_query, ["a"]).shape[1]
    if dimension != documents.dimension:
        raise InputError(
            f"the queries have {dimension} dimensions and the documents by {documents.name} have "
            f"{documents.dimension}; expected encoders of one embedding space"
        )
    score = score_retrieval(_Pair(encoder, documents.encoder), task.retrieval)
    return replace(score, task=task.name)


def retrieval_table(title: str, rows: Rows, legends: Sequence[str] = ()) -> Table:
    """Return a table of MRR@10, nDCG@10 and MAP@100 with a row per set and model.

    Args:
        title: Title of the table.
        rows: The models, with scores as `score_retrieval` returns them.
        legends: Further parts of the legend.
    """
    reference = reference_name(rows)
    titles = ("model", "set", "queries", "MRR@10", "nDCG@10", "MAP@100", *([] if reference is None else ["%"]))
    cells = []
    for at in range(len(first_scores(rows))):
        for name, model in rows.items():
            score = model.scores[at]
            metrics = (fixed(score.details[MRR] / 100, 4), fraction(score), fixed(score.details[MAP] / 100, 4))
            relative = [] if reference is None else [percent(at)(model)]
            cells.append((name, score.task, f"{score.items:,}", *metrics, *relative))
    legend = [
        "exact search by cosine similarity, binary relevance",
        *legends,
        *([] if reference is None else [f"%: nDCG@10 in percent of {reference}'s"]),
        INTERVAL_LEGEND,
    ]
    return Table(title, titles, tuple(cells), "; ".join(legend))


class _Pair:
    """Encodes queries with one encoder and documents with another."""

    def __init__(self, queries: SentenceEncoder, documents: SentenceEncoder) -> None:
        self.encode = self.encode_query = queries.encode_query
        self.encode_document: Any = documents.encode_document
