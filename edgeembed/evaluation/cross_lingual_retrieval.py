"""Retrieval across languages: is the paragraph found that answers a question asked in another language?"""

from dataclasses import dataclass, replace
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.encoders import SentenceEncoder
from edgeembed.evaluation.language_pairs import choose_pairs, split_pairs, task_name, with_means
from edgeembed.evaluation.remembering import RememberingEncoder
from edgeembed.evaluation.retrieval import RetrievalSet, read_retrieval, score_retrieval
from edgeembed.evaluation.scores import Score

METRIC = "nDCG@10 x100, language pair"
_LAYOUT = "expected LANGUAGE/corpus.jsonl, LANGUAGE/queries.jsonl and LANGUAGE/qrels/test.tsv of two languages or more"


@dataclass(frozen=True)
class CrossLingualRetrieval:
    """Questions in one language and documents in the same or another.

    Attributes:
        name: The folder's name.
        sets: A retrieval set by the pair of languages: of "de-en" queries are German, documents English.
    """

    name: str
    sets: dict[str, RetrievalSet]


def read_cross_lingual_retrieval(given: str | Path) -> CrossLingualRetrieval:
    """Read a retrieval set that was translated, such as XQuAD.

    Args:
        given: A folder that holds a BEIR folder a language, as `read_retrieval` takes it, with the same ids in all.
            `#de-en,es-es` after it chooses pairs of languages; without that they are those of `choose_pairs`, both
            ways.

    Raises:
        InputError: If a folder cannot be used, a query or its documents are not in both languages, or a pair is not
            there.
    """
    folder, names = split_pairs(given)
    languages = [file.parent.name for file in sorted(folder.glob("*/queries.jsonl"))]
    if not languages:
        raise InputError(f"{folder} holds no retrieval sets in languages; {_LAYOUT}")
    chosen = choose_pairs(folder, languages, names, both_ways=True)
    read = {language: read_retrieval(folder / language) for language in sorted({*sum(chosen.values(), ())})}
    name = folder.resolve().name
    return CrossLingualRetrieval(
        name,
        {
            pair: _across(folder, task_name(name, pair), read[asked], read[answered])
            for pair, (asked, answered) in chosen.items()
        },
    )


def score_cross_lingual_retrieval(encoder: SentenceEncoder, task: CrossLingualRetrieval) -> list[Score]:
    """Score an encoder as `score_retrieval` does, pair by pair of languages.

    Args:
        encoder: What to score; it reads each text once.
        task: Queries and documents.

    Returns:
        One score a pair of languages, and their means: within a language, across languages, of all.

    Raises:
        CheckError: As for `score_retrieval`.
    """
    remembering = RememberingEncoder(encoder)
    scores = [score_retrieval(remembering, each) for each in task.sets.values()]
    return with_means(task.name, [replace(score, metric=METRIC) for score in scores])


def _across(folder: Path, name: str, asked: RetrievalSet, answered: RetrievalSet) -> RetrievalSet:
    if asked.relevant != answered.relevant:
        raise InputError(
            f"{folder}: {asked.name} and {answered.name} judge different queries or documents; "
            "expected the same ids in every language"
        )
    return RetrievalSet(name, asked.queries, answered.documents, asked.relevant)
