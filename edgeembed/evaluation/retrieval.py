"""Retrieval: does the nearest document answer the query?"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.duplicates import read_duplicates
from edgeembed.evaluation.encoders import SentenceEncoder, vectors
from edgeembed.evaluation.scores import Score

METRIC = "nDCG@10 x100"
MRR = "MRR@10 x100"
MAP = "MAP@100 x100"
_LAYOUT = "expected a BEIR folder: corpus.jsonl, queries.jsonl, qrels/test.tsv"


@dataclass(frozen=True)
class RetrievalSet:
    """Queries, documents, and which documents answer which query.

    Attributes:
        name: The folder's name; for a file its own, with its folder.
        queries: Judged queries by id.
        documents: Title and text of each document, by id.
        relevant: Ids of the documents that answer a query, by query id. Grades above 0 all count as relevant.
    """

    name: str
    queries: dict[str, str]
    documents: dict[str, str]
    relevant: dict[str, set[str]]


def read_retrieval(path: Path) -> RetrievalSet:
    """Read a retrieval set in the BEIR layout, or a file of duplicate questions.

    Args:
        path: A folder that holds `corpus.jsonl` (_id, title, text), `queries.jsonl` (_id, text) and `qrels/test.tsv`
            (query-id, corpus-id, score; with a header); or a file as `read_duplicates` takes it.

    Returns:
        The set, with the judged queries alone.

    Raises:
        InputError: If a file is absent or malformed, or a judgement names a text that is not there.
    """
    if path.is_file():
        return RetrievalSet(f"{path.resolve().parent.name}/{path.stem}", *read_duplicates(path))
    return _read_beir(path)


def _read_beir(folder: Path) -> RetrievalSet:
    documents = {key: _document(row) for key, row in _lines(folder / "corpus.jsonl")}
    queries = {key: row["text"] for key, row in _lines(folder / "queries.jsonl")}
    relevant = _judgements(folder / "qrels" / "test.tsv")
    for query, found in relevant.items():
        if query not in queries or not found <= documents.keys():
            raise InputError(f"{folder}: a judgement of query {query} names a text that is not there; {_LAYOUT}")
    return RetrievalSet(folder.resolve().name, {query: queries[query] for query in relevant}, documents, relevant)


def score_retrieval(encoder: SentenceEncoder, task: RetrievalSet) -> Score:
    """Score an encoder by exact search over all documents, ranked by cosine.

    Args:
        encoder: What to score.
        task: A retrieval set.

    Returns:
        nDCG@10 with binary relevance; MRR@10, MAP@100, recall@10 and recall@100 among the details. All x100. Of a
        query, MAP@100 is the mean of the precisions at the ranks of those of its documents that are among the first
        100, each that is not counting as 0.

    Raises:
        CheckError: If the encoder gives vectors that are not finite.
    """
    found = retrieval_metrics(encoder, task)
    details = {
        MRR: 100 * float(found["mrr@k"][10]),
        MAP: 100 * float(found["map@k"][100]),
        "recall@10 x100": 100 * float(found["recall@k"][10]),
        "recall@100 x100": 100 * float(found["recall@k"][100]),
    }
    return Score(task.name, METRIC, 100 * float(found["ndcg@k"][10]), len(task.queries), details)


def retrieval_metrics(encoder: SentenceEncoder, task: RetrievalSet) -> dict[str, dict[int, Any]]:
    """Give all that sentence-transformers' evaluator tells of an exact search by cosine, each figure from 0 to 1.

    Args:
        encoder: What to score.
        task: A retrieval set.

    Returns:
        "accuracy@k", "recall@k", "mrr@k", "ndcg@k" and others, each by k.

    Raises:
        CheckError: If the encoder gives vectors that are not finite.
    """
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
    from sentence_transformers.util import cos_sim

    evaluator = InformationRetrievalEvaluator(
        task.queries,
        task.documents,
        task.relevant,
        precision_recall_at_k=[10, 100],
        map_at_k=[100],
        write_csv=False,
        score_functions={"cosine": cos_sim},
    )
    found: dict[str, dict[int, Any]] = evaluator.compute_all_metrics(_Adapter(encoder))["cosine"]
    return found


class _Adapter:
    """Gives the evaluator plain vectors, without its torch-only options."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder

    def encode_query(self, texts: list[str], **_: Any) -> Any:
        return vectors(self._encoder.encode_query, texts)

    def encode_document(self, texts: list[str], **_: Any) -> Any:
        return vectors(self._encoder.encode_document, texts)


def _document(row: dict[str, Any]) -> str:
    return f"{row.get('title') or ''} {row['text']}".strip()


def _lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _row(line, f"{file}, line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}; {_LAYOUT}") from error


def _row(line: str, place: str) -> tuple[str, dict[str, Any]]:
    try:
        row = json.loads(line)
        if isinstance(row["text"], str):
            return str(row["_id"]), row
    except (ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{place} is no text; expected a JSON object with _id and text")


def _judgements(file: Path) -> dict[str, set[str]]:
    relevant: dict[str, set[str]] = {}
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                if float(row["score"]) > 0:
                    relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}; {_LAYOUT}") from error
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise InputError(f"{file} is malformed: {error}; expected query-id, corpus-id and a numeric score") from error
    if not relevant:
        raise InputError(f"{file} judges no document relevant; expected one or more scores above 0")
    return relevant
