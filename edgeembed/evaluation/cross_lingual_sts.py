"""Similarity across languages, table 1 of Xayn's paper: do cosines order pairs of sentences in two languages?"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.encoders import SentenceEncoder
from edgeembed.evaluation.language_pairs import choose_pairs, split_pairs, task_name, with_means
from edgeembed.evaluation.remembering import RememberingEncoder
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.sts import SentencePairs, read_sts, score_sts

METRIC = "Spearman x100, language pair"
_LAYOUT = "expected LANGUAGE/test.tsv of two languages or more, or files such as es-en.tsv"


@dataclass(frozen=True)
class CrossLingualPairs:
    """Scored sentence pairs of several pairs of languages.

    Attributes:
        name: The folder's name.
        pairs: Sentence pairs by the pair of languages, such as "es-en".
    """

    name: str
    pairs: dict[str, SentencePairs]


def read_cross_lingual_sts(given: str | Path) -> CrossLingualPairs:
    """Read scored sentence pairs in several languages.

    Args:
        given: A folder in one of two forms, whose files are as `read_sts` takes them. Either it holds a file a pair of
            languages, `es-en.tsv`, as STS 2017 does. Or it holds a folder a language with `test.tsv`, as
            stsb_multi_mt does, in which rows of the same number are translations and have the same score: of `de-en`
            sentence1 is then the German one and sentence2 the English one. `#de-en,es-es` after the folder chooses
            pairs of languages; without it they are all files, or of translations those that `choose_pairs` gives.

    Raises:
        InputError: If a file cannot be used, rows are no translations of each other, or a pair is not there.
    """
    folder, names = split_pairs(given)
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; {_LAYOUT}")
    name = folder.resolve().name
    translations = {file.parent.name: file for file in sorted(folder.glob("*/test.tsv"))}
    found = _pair_translations(folder, translations, names) if translations else _read_files(folder, names)
    return CrossLingualPairs(
        name, {pair: replace(each, name=task_name(name, pair), held_out=None) for pair, each in found.items()}
    )


def score_cross_lingual_sts(encoder: SentenceEncoder, task: CrossLingualPairs) -> list[Score]:
    """Score an encoder by Spearman's correlation over each pair of languages.

    Args:
        encoder: What to score; it reads each sentence once.
        task: Sentence pairs.

    Returns:
        One score a pair of languages, and their means: within a language, across languages, of all.

    Raises:
        CheckError: As for `score_sts`.
    """
    remembering = RememberingEncoder(encoder)
    scores = [score_sts(remembering, pairs)[0] for pairs in task.pairs.values()]
    return with_means(task.name, [replace(score, metric=METRIC) for score in scores])


def _read_files(folder: Path, names: tuple[str, ...]) -> dict[str, SentencePairs]:
    files = dict(sorted((file.stem, file) for file in folder.glob("*-*.tsv")))
    if not files:
        raise InputError(f"{folder} holds no sentence pairs in languages; {_LAYOUT}")
    absent = [name for name in names if name not in files]
    if absent:
        raise InputError(f"{folder} has no pair {absent[0]}; expected some of {', '.join(files)}")
    return {name: read_sts(files[name]) for name in names or files}


def _pair_translations(folder: Path, files: dict[str, Path], names: tuple[str, ...]) -> dict[str, SentencePairs]:
    chosen = choose_pairs(folder, files, names, both_ways=False)
    read = {
        language: read_sts(files[language]) for language in sorted({each for pair in chosen.values() for each in pair})
    }
    first, *others = read
    for other in others:
        if not np.array_equal(read[first].scores, read[other].scores):
            raise InputError(
                f"{files[first]} and {files[other]} have different scores; "
                "expected rows of the same number to be translations, with the same score"
            )
    return {name: replace(read[one], second=read[other].second) for name, (one, other) in chosen.items()}
