"""Retrieval across languages: queries in one language, documents in another (Xayn's paper, table 2)."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from edgeembed_bench.render.tables import Table
from edgeembed_runtime.errors import InputError

from edgeembed.corpus.sources import split_columns
from edgeembed.evaluation.encoders import CachingEncoder, SentenceEncoder
from edgeembed.evaluation.language_pairs import choose_language_pairs, task_name, with_means
from edgeembed.evaluation.model_evaluation import Rows
from edgeembed.evaluation.retrieval_set import RetrievalSet, read_retrieval
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike
from edgeembed.evaluation.tasks.retrieval import retrieval_table, score_retrieval

METRIC = "nDCG@10 x100, language pair"
_LAYOUT = "expected LANGUAGE/corpus.jsonl, LANGUAGE/queries.jsonl and LANGUAGE/qrels/test.tsv of at least two languages"


@dataclass(frozen=True)
class TranslatedRetrieval:
    """A translated retrieval set, with queries and documents in the same or in different languages.

    Attributes:
        name: The folder's name.
        sets: Retrieval sets by language pair; "de-en" has German queries and English documents.
    """

    name: str
    sets: dict[str, RetrievalSet]


@TASKS.register("cross-lingual-retrieval")
class CrossLingualRetrieval(EvaluationTask):
    """Retrieval within and across languages.

    Args:
        sources: Folders, as `read_cross_lingual_retrieval` takes them.

    Raises:
        InputError: If one cannot be read.
    """

    metavar = "DIR[#PAIRS]"
    help = (
        "One BEIR folder per language, with the same ids: queries of the first language, documents of the second. "
        "DIR#de-en,es-es selects language pairs. nDCG@10, MRR@10, MAP@100 per language pair."
    )

    def __init__(self, *sources: PathLike) -> None:
        self.sets = [read_cross_lingual_retrieval(each) for each in self.check_sources(sources)]

    def score(self, encoder: SentenceEncoder, data: TranslatedRetrieval) -> list[Score]:
        """Score an encoder, see `score_cross_lingual_retrieval`."""
        return score_cross_lingual_retrieval(encoder, data)

    @classmethod
    def tables(cls, rows: Rows) -> list[Table]:
        """Return table 2 of Xayn's paper, with a row per language pair and model."""
        return [retrieval_table("Retrieval across languages", rows, ["de-en: German queries, English documents"])]


def read_cross_lingual_retrieval(path: str | os.PathLike[str]) -> TranslatedRetrieval:
    """Read a translated retrieval set, such as XQuAD.

    Args:
        path: A folder with one BEIR folder per language, in the format of `read_retrieval`, with the same ids in all.
            `#de-en,es-es` after it selects language pairs; by default, those of `choose_language_pairs` in both
            directions.

    Raises:
        InputError: If a folder cannot be read, its judgments differ between languages, or a language pair is missing.
    """
    location, names = split_columns(os.fspath(path))
    folder = Path(location)
    languages = [file.parent.name for file in sorted(folder.glob("*/queries.jsonl"))]
    if not languages:
        raise InputError(f"{folder} contains no translated retrieval set; {_LAYOUT}")
    chosen = choose_language_pairs(folder, languages, names, both_directions=True)
    sets = {language: read_retrieval(folder / language) for language in sorted({*sum(chosen.values(), ())})}
    name = folder.resolve().name
    return TranslatedRetrieval(
        name,
        {
            pair: _combine(folder, task_name(name, pair), sets[query_language], sets[document_language])
            for pair, (query_language, document_language) in chosen.items()
        },
    )


def score_cross_lingual_retrieval(encoder: SentenceEncoder, task: TranslatedRetrieval) -> list[Score]:
    """Score an encoder like `score_retrieval`, per language pair.

    Args:
        encoder: The encoder; it encodes each distinct text once.
        task: Queries and documents.

    Returns:
        One score per language pair; then the means within languages, across languages, and over all pairs.

    Raises:
        CheckError: As for `score_retrieval`.
    """
    caching = CachingEncoder(encoder)
    scores = [score_retrieval(caching, each) for each in task.sets.values()]
    return with_means(task.name, [replace(score, metric=METRIC) for score in scores])


def _combine(folder: Path, name: str, query_set: RetrievalSet, document_set: RetrievalSet) -> RetrievalSet:
    if query_set.relevant != document_set.relevant:
        raise InputError(
            f"{folder}: {query_set.name} and {document_set.name} have different judgments; "
            "expected the same ids in every language"
        )
    return RetrievalSet(name, query_set.queries, document_set.documents, query_set.relevant)
