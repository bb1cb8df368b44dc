"""Similarity across languages: Spearman correlation per pair of languages (Xayn's paper, table 1)."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from edgeembed_bench.render.tables import Table
from edgeembed_runtime.errors import InputError

from edgeembed.corpus.pairs import SentencePairs, read_sts
from edgeembed.corpus.sources import split_columns
from edgeembed.corpus.streams import file_ending
from edgeembed.evaluation.encoders import CachingEncoder, SentenceEncoder
from edgeembed.evaluation.language_pairs import (
    ACROSS,
    AVERAGE,
    WITHIN,
    choose_language_pairs,
    split_task_name,
    task_name,
    with_means,
)
from edgeembed.evaluation.layout import (
    PARAMETERS,
    PARAMETERS_LEGEND,
    Columns,
    first_scores,
    percent,
    reference_name,
    table,
    value,
)
from edgeembed.evaluation.model_evaluation import Rows
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike
from edgeembed.evaluation.tasks.sts import score_sts

METRIC = "Spearman x100, language pair"
_MEANS = {WITHIN: "within", ACROSS: "across", AVERAGE: "Avg."}
_LAYOUT = "expected LANGUAGE/test.tsv of at least two languages, or files such as es-en.tsv"


@dataclass(frozen=True)
class LanguagePairs:
    """Scored sentence pairs in several pairs of languages.

    Attributes:
        name: The folder's name.
        pairs: Sentence pairs by language pair, such as "es-en".
    """

    name: str
    pairs: dict[str, SentencePairs]


@TASKS.register("cross-lingual-sts")
class CrossLingualSTS(EvaluationTask):
    """Similarity of sentence pairs within and across languages.

    Args:
        sources: Folders, as `read_cross_lingual_sts` takes them.

    Raises:
        InputError: If one cannot be read.
    """

    metavar = "DIR[#PAIRS]"
    help = (
        "Scored sentence pairs in several languages: a folder of LANGUAGE/test.tsv, whose rows are translations, or of "
        "files such as es-en.tsv. DIR#de-en,es-es selects language pairs. Spearman correlation per language pair."
    )

    def __init__(self, *sources: PathLike) -> None:
        self.sets = [read_cross_lingual_sts(each) for each in self.check_sources(sources)]

    def score(self, encoder: SentenceEncoder, data: LanguagePairs) -> list[Score]:
        """Score an encoder, see `score_cross_lingual_sts`."""
        return score_cross_lingual_sts(encoder, data)

    @classmethod
    def tables(cls, rows: Rows) -> list[Table]:
        """Return table 1 of Xayn's paper, for each set."""
        sets: dict[str, dict[str, int]] = {}
        for at, score in enumerate(first_scores(rows)):
            name, pair = split_task_name(score.task)
            sets.setdefault(name, {})[pair] = at
        return [_table(rows, name, pairs) for name, pairs in sets.items()]


def read_cross_lingual_sts(path: str | os.PathLike[str]) -> LanguagePairs:
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
        raise InputError(f"{folder} is not a folder; {_LAYOUT}")
    name = folder.resolve().name
    translations = {file.parent.name: file for file in sorted(folder.glob("*/test.tsv"))}
    pairs = _pair_translations(folder, translations, names) if translations else _read_pair_files(folder, names)
    return LanguagePairs(
        name, {pair: replace(each, name=task_name(name, pair), held_out=None) for pair, each in pairs.items()}
    )


def score_cross_lingual_sts(encoder: SentenceEncoder, task: LanguagePairs) -> list[Score]:
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
    return with_means(task.name, [replace(score, metric=METRIC) for score in scores])


def _read_pair_files(folder: Path, names: tuple[str, ...]) -> dict[str, SentencePairs]:
    files = dict(sorted((file.stem, file) for file in folder.glob("*-*") if file_ending(file) == ".tsv"))
    if not files:
        raise InputError(f"{folder} contains no sentence pairs by language; {_LAYOUT}")
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


def _table(rows: Rows, name: str, pairs: Mapping[str, int]) -> Table:
    reference = reference_name(rows)
    columns: Columns = {_MEANS.get(pair, pair.upper()): value(at) for pair, at in pairs.items()}
    legends = ["Spearman correlation x100; ES-EN: first sentences in es, second ones in en, or as in the file"]
    if WITHIN in pairs:
        legends.append("within, across: means over pairs of one language and of two languages")
    legends.append("Avg.: mean over all pairs of languages")
    if reference is not None:
        columns["%"] = percent(pairs[AVERAGE])
        legends.append(f"%: Avg. in percent of {reference}'s")
    return table(f"Similarity across languages, {name}", rows, columns | PARAMETERS, [*legends, PARAMETERS_LEGEND])
