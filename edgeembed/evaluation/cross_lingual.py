"""Cross-lingual STS and retrieval: sets with one score per pair of languages (Xayn's paper, tables 1 and 2)."""

import os
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from edgeembed_runtime.errors import InputError

from edgeembed.corpus.pairs import SentencePairs, read_sts
from edgeembed.corpus.sources import split_columns
from edgeembed.corpus.streams import file_ending
from edgeembed.evaluation.encoders import CachingEncoder, SentenceEncoder
from edgeembed.evaluation.retrieval import RetrievalSet, read_retrieval, score_retrieval
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.sts import score_sts

STS_METRIC = "Spearman x100, language pair"
RETRIEVAL_METRIC = "nDCG@10 x100, language pair"
PIVOT = "en"
"""The language that the others are paired with by default, as in the table of Xayn's paper."""
WITHIN, ACROSS, AVERAGE = "within", "across", "average"
_STS_LAYOUT = "expected LANGUAGE/test.tsv of at least two languages, or files such as es-en.tsv"
_RETRIEVAL_LAYOUT = (
    "expected LANGUAGE/corpus.jsonl, LANGUAGE/queries.jsonl and LANGUAGE/qrels/test.tsv of at least two languages"
)


@dataclass(frozen=True)
class CrossLingualSTS:
    """Scored sentence pairs in several pairs of languages.

    Attributes:
        name: The folder's name.
        pairs: Sentence pairs by language pair, such as "es-en".
    """

    name: str
    pairs: dict[str, SentencePairs]


@dataclass(frozen=True)
class CrossLingualRetrieval:
    """A translated retrieval set, with queries and documents in the same or in different languages.

    Attributes:
        name: The folder's name.
        sets: Retrieval sets by language pair; "de-en" has German queries and English documents.
    """

    name: str
    sets: dict[str, RetrievalSet]


def read_cross_lingual_sts(path: str | os.PathLike[str]) -> CrossLingualSTS:
    """Read scored sentence pairs in several languages.

    Args:
        path: A folder in one of two layouts, with files in the format of `read_sts`. Either one file per language pair,
            such as `es-en.tsv` (STS 2017). Or one folder per language with `test.tsv` (stsb_multi_mt), where equal row
            numbers are translations with the same score; then `de-en` pairs the German sentence1 with the English
            sentence2. `#de-en,es-es` after the folder selects language pairs; by default, all files or the pairs of
            `choose_language_pairs`.

    Raises:
        InputError: If a file cannot be read, rows are not translations of each other, or a language pair is missing.
    """
    location, names = split_columns(os.fspath(path))
    folder = Path(location)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; {_STS_LAYOUT}")
    name = folder.resolve().name
    translations = {file.parent.name: file for file in sorted(folder.glob("*/test.tsv"))}
    pairs = _pair_translations(folder, translations, names) if translations else _read_pair_files(folder, names)
    return CrossLingualSTS(
        name, {pair: replace(each, name=task_name(name, pair), held_out=None) for pair, each in pairs.items()}
    )


def score_cross_lingual_sts(encoder: SentenceEncoder, task: CrossLingualSTS) -> list[Score]:
    """Compute the Spearman correlation of cosine similarities with human scores, per language pair.

    Args:
        encoder: The encoder; it encodes each distinct sentence once.
        task: The sentence pairs.

    Returns:
        One score per language pair; then the means within languages, across languages, and over all pairs.

    Raises:
        CheckError: As for `score_sts`.
    """
    caching = CachingEncoder(encoder)
    scores = [score_sts(caching, pairs)[0] for pairs in task.pairs.values()]
    return with_means(task.name, [replace(score, metric=STS_METRIC) for score in scores])


def read_cross_lingual_retrieval(path: str | os.PathLike[str]) -> CrossLingualRetrieval:
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
        raise InputError(f"{folder} contains no translated retrieval set; {_RETRIEVAL_LAYOUT}")
    chosen = choose_language_pairs(folder, languages, names, both_directions=True)
    sets = {language: read_retrieval(folder / language) for language in sorted({*sum(chosen.values(), ())})}
    name = folder.resolve().name
    return CrossLingualRetrieval(
        name,
        {
            pair: _combine(folder, task_name(name, pair), sets[query_language], sets[document_language])
            for pair, (query_language, document_language) in chosen.items()
        },
    )


def score_cross_lingual_retrieval(encoder: SentenceEncoder, task: CrossLingualRetrieval) -> list[Score]:
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
    return with_means(task.name, [replace(score, metric=RETRIEVAL_METRIC) for score in scores])


def choose_language_pairs(
    path: Path, languages: Collection[str], names: Sequence[str], *, both_directions: bool
) -> dict[str, tuple[str, str]]:
    """Return the language pairs to score.

    Args:
        path: Path of the set, for error messages.
        languages: Its languages.
        names: The selected pairs, such as `de-en`. If empty: each language with itself and with English; without
            English, each with every other.
        both_directions: Whether the default pairs include `en-de` as well as `de-en`.

    Returns:
        The two languages of each pair, by its name.

    Raises:
        InputError: If a selected pair has an unknown language.
    """
    known = {f"{first}-{second}": (first, second) for first in languages for second in languages}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"{path} has no pair {unknown[0]}; expected two of {', '.join(sorted(languages))}: de-en")
    if names:
        return {name: known[name] for name in names}
    every, has_pivot = sorted(languages), PIVOT in languages
    across = [(first, second) for first in every for second in every if first != second]
    if has_pivot:
        across = [pair for pair in across if PIVOT in pair]
    if not both_directions:
        across = [(first, second) for first, second in across if (second == PIVOT if has_pivot else first < second)]
    return {f"{first}-{second}": (first, second) for first, second in [*((each, each) for each in every), *across]}


def is_monolingual(pair: str) -> bool:
    """Return whether both languages of a pair are the same, as in `es-es` or `es-es-news`."""
    parts = pair.split("-")
    return any(parts[:count] == parts[count : 2 * count] for count in range(1, len(parts) // 2 + 1))


def task_name(name: str, pair: str) -> str:
    """Return the task name of a language pair of a set."""
    return f"{name}, {pair}"


def split_task_name(task: str) -> tuple[str, str]:
    """Return the set and the language pair of a task name made by `task_name`."""
    name, _, pair = task.rpartition(", ")
    return name, pair


def with_means(name: str, scores: Sequence[Score]) -> list[Score]:
    """Return the scores of a set, followed by their means within languages, across languages and over all pairs.

    Args:
        name: Name of the set.
        scores: One score per language pair, with task names made by `task_name`.
    """
    within = [score for score in scores if is_monolingual(split_task_name(score.task)[1])]
    across = [score for score in scores if score not in within]
    means = {WITHIN: within, ACROSS: across} if within and across else {}
    return [*scores, *(_mean(task_name(name, kind), each) for kind, each in (means | {AVERAGE: scores}).items())]


def _mean(task: str, scores: Sequence[Score]) -> Score:
    details = {key: statistics.fmean(score.details[key] for score in scores) for key in scores[0].details}
    value = statistics.fmean(score.value for score in scores)
    return Score(task, scores[0].metric, value, sum(score.items for score in scores), details)


def _read_pair_files(folder: Path, names: tuple[str, ...]) -> dict[str, SentencePairs]:
    files = dict(sorted((file.stem, file) for file in folder.glob("*-*") if file_ending(file) == ".tsv"))
    if not files:
        raise InputError(f"{folder} contains no sentence pairs by language; {_STS_LAYOUT}")
    missing = [name for name in names if name not in files]
    if missing:
        raise InputError(f"{folder} has no pair {missing[0]}; expected some of {', '.join(files)}")
    return {name: read_sts(files[name]) for name in names or files}


def _pair_translations(folder: Path, files: dict[str, Path], names: tuple[str, ...]) -> dict[str, SentencePairs]:
    chosen = choose_language_pairs(folder, files, names, both_directions=False)
    pairs = {language: read_sts(files[language]) for language in sorted({*sum(chosen.values(), ())})}
    first, *others = pairs
    for other in others:
        if not np.array_equal(pairs[first].scores, pairs[other].scores):
            raise InputError(
                f"{files[first]} and {files[other]} have different scores; "
                "expected equal row numbers to be translations with the same score"
            )
    return {name: replace(pairs[one], second=pairs[other].second) for name, (one, other) in chosen.items()}


def _combine(folder: Path, name: str, query_set: RetrievalSet, document_set: RetrievalSet) -> RetrievalSet:
    if query_set.relevant != document_set.relevant:
        raise InputError(
            f"{folder}: {query_set.name} and {document_set.name} have different judgments; "
            "expected the same ids in every language"
        )
    return RetrievalSet(name, query_set.queries, document_set.documents, query_set.relevant)
