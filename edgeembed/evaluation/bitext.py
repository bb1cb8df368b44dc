"""Bitext retrieval: is a sentence's nearest neighbour in the other language its translation?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.distinct_sample import DistinctSample
from edgeembed.corpus.sources import split_columns
from edgeembed.corpus.streams import read_lines
from edgeembed.evaluation.encoders import SentenceEncoder
from edgeembed.evaluation.language_pairs import AVERAGE, task_name
from edgeembed.evaluation.remembering import RememberingEncoder
from edgeembed.evaluation.retrieval import RetrievalSet, retrieval_metrics
from edgeembed.evaluation.scores import Score
from edgeembed.tsv import read_tsv

METRIC = "accuracy x100, bitext"
ROWS = 1000
"""Accuracy falls with the number of pairs; Tatoeba's test set has 1,000 of a language (Artetxe and Schwenk 2019)."""
_EXPECTED = "expected TSV with a header and a sentence and its translation in every row: PATH#column1,column2"
_SEED = 0


@dataclass(frozen=True)
class Bitext:
    """Sentences and their translations.

    Attributes:
        name: The file's name, with its folder.
        languages: What the two columns are called.
        pairs: Sentences and translations, no two pairs equal.
    """

    name: str
    languages: tuple[str, str]
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class BitextSet:
    """Files of sentences and their translations.

    Attributes:
        name: What reporters call them.
        files: One a pair of languages.
    """

    name: str
    files: tuple[Bitext, ...]


def read_bitext(given: Sequence[str | Path], rows: int = ROWS) -> BitextSet:
    """Read files of sentences and their translations.

    Args:
        given: UTF-8 files, tab-separated, no quoting, plain or compressed, with a header; the first two columns are
            the languages, or those of `#en,de` after the path.
        rows: The most distinct pairs to take of a file, a random sample of it that is always the same.

    Raises:
        InputError: If a file cannot be read, a row lacks a sentence, or a file has fewer than two distinct pairs.
    """
    return BitextSet("bitext", tuple(_read(*split_columns(str(file)), rows) for file in given))


def score_bitext(encoder: SentenceEncoder, task: BitextSet) -> list[Score]:
    """Score an encoder by how many of 100 sentences have a translation as their nearest neighbour, by cosine.

    Equal sentences count once; one with several translations in the sample may have any of them nearest.

    Args:
        encoder: What to score; it reads both languages as sentences, neither as queries.
        task: Sentences and translations.

    Returns:
        Two scores a file, one each way, and with two files or more the mean of all.

    Raises:
        CheckError: If the encoder gives vectors that are not finite.
    """
    remembering = RememberingEncoder(encoder, symmetric=True)
    scores = []
    for file in task.files:
        (first, second), backwards = file.languages, [(there, here) for here, there in file.pairs]
        scores.append(_score(remembering, task_name(file.name, f"{first} to {second}"), file.pairs))
        scores.append(_score(remembering, task_name(file.name, f"{second} to {first}"), backwards))
    if len(task.files) > 1:
        mean = sum(score.value for score in scores) / len(scores)
        scores.append(Score(task_name(task.name, AVERAGE), METRIC, mean, sum(score.items for score in scores)))
    return scores


def _score(encoder: RememberingEncoder, name: str, pairs: Iterable[tuple[str, str]]) -> Score:
    translations: dict[str, set[str]] = {}
    for sentence, translation in pairs:
        translations.setdefault(sentence, set()).add(translation)
    candidates = dict.fromkeys(each for found in translations.values() for each in found)
    # Texts are their own ids: equal ones are one query and one document.
    task = RetrievalSet(name, {each: each for each in translations}, {each: each for each in candidates}, translations)
    found = 100 * float(retrieval_metrics(encoder, task)["accuracy@k"][1])
    return Score(name, METRIC, found, len(translations), {"candidates": len(candidates)})


def _read(file: Path, columns: tuple[str, ...], rows: int) -> Bitext:
    languages = columns or _header(file)
    if len(languages) != 2:
        raise InputError(f"{file} is read by {len(languages)} columns, {', '.join(languages) or 'none'}; {_EXPECTED}")
    first, second = languages
    sample = DistinctSample(rows, _SEED)
    for number, row in enumerate(read_tsv(file, languages, (), _EXPECTED), start=1):
        if not (row[first] and row[second]):
            raise InputError(f"{file}, row {number} lacks a sentence; {_EXPECTED}")
        sample.read([f"{row[first]}\t{row[second]}"])
    pairs = [each.split("\t") for each in sample.texts()]
    if len(pairs) < 2:
        raise InputError(f"{file} has {len(pairs)} distinct pairs; expected two or more to choose from")
    name = f"{file.resolve().parent.name}/{file.name.partition('.')[0]}"
    return Bitext(name, (first, second), tuple((one, other) for one, other in pairs))


def _header(file: Path) -> tuple[str, ...]:
    _, header = next(read_lines(file), (1, ""))
    return tuple(header.split("\t")[:2])
