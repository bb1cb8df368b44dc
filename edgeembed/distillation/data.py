"""Read the text and the labeled data of a distillation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from edgeembed.corpus import Corpus, gather_corpus, held_out_count, split_holdout
from edgeembed.corpus.inputs import CorpusLike, holds_texts, open_corpus
from edgeembed.corpus.parallel import ParallelText, read_parallel
from edgeembed.progress import Reporter
from edgeembed.recipe.schema import Recipe
from edgeembed.training.data import LabeledData

ParallelLike: TypeAlias = Sequence[str | Path] | ParallelText


@dataclass(frozen=True)
class DistillationData:
    """Everything that a student learns from.

    Attributes:
        sentences: Distinct sentences, without the held-out ones.
        held_out: The held-out ones, on which student and teacher are compared.
        domains: Domain of each sentence that has one: the number of its source.
        parallel: Sentences with translations; None without.
        labeled: Labeled and scored pairs.
        names: Names of the sources, stated on the student's model card.
    """

    sentences: list[str]
    held_out: list[str]
    domains: dict[str, int]
    parallel: ParallelText | None
    labeled: LabeledData
    names: tuple[str, ...]


def read_data(
    recipe: Recipe,
    corpus: CorpusLike | None,
    parallel: ParallelLike,
    labeled: LabeledData,
    labeled_files: Sequence[str | Path],
    reporter: Reporter,
    *,
    seed: int,
) -> DistillationData:
    """Read the corpus and the translations, hold sentences out, and report the counts.

    Args:
        recipe: The recipe.
        corpus: Unlabeled text; None if the recipe needs none.
        parallel: Files of translations, or translations in memory.
        labeled: Labeled and scored pairs. If there is no other text, their texts are the sentences.
        labeled_files: The files that these were read from.
        reporter: Receives the counts.
        seed: Decides all samples.

    Raises:
        InputError: If a source cannot be read or has no usable text.
    """
    sentences: list[str] = []
    held_out: list[str] = []
    domains: dict[str, int] = {}
    if corpus is not None:
        read = read_recipe_corpus(recipe, corpus, seed)
        reporter.note(f"corpus: {read.counts}")
        sentences, held_out = split_corpus(recipe, read.sentences, seed)
        domains = read.domains
    translated = _read_parallel(recipe, parallel, seed)
    for counts in translated.languages if translated else ():
        reporter.note(str(counts))
    if corpus is None and translated is None:
        sentences = labeled.texts()
    files = (*(translated.files if translated else ()), *labeled_files)
    names = (*(() if corpus is None else _source_names(corpus)), *map(str, files))
    return DistillationData(sentences, held_out, domains, translated, labeled, names)


def read_recipe_corpus(recipe: Recipe, corpus: CorpusLike, seed: int = 0) -> Corpus:
    """Return the sentences that a recipe selects; arguments and errors are those of `gather_corpus`."""
    settings = recipe.corpus
    return gather_corpus(
        corpus,
        limit=settings.limit or None,
        limit_per_source=settings.limit_per_source or None,
        min_characters=settings.min_characters,
        max_characters=settings.max_characters,
        seed=seed,
    )


def split_corpus(recipe: Recipe, sentences: Sequence[str], seed: int = 0) -> tuple[list[str], list[str]]:
    """Return the training sentences and the held-out ones: a tenth of all, at most `corpus.heldout` of the recipe.

    Args:
        recipe: The recipe.
        sentences: Distinct sentences.
        seed: Decides the sample.
    """
    return split_holdout(sentences, held_out_count(len(sentences), recipe.corpus.heldout), seed)


def _read_parallel(recipe: Recipe, parallel: ParallelLike, seed: int) -> ParallelText | None:
    if isinstance(parallel, ParallelText):
        return parallel
    if not parallel:
        return None
    return read_parallel(
        parallel,
        limit=recipe.parallel.limit,
        smoothing=recipe.parallel.smoothing,
        min_characters=recipe.corpus.min_characters,
        max_characters=recipe.corpus.max_characters,
        seed=seed,
    )


def _source_names(corpus: CorpusLike) -> list[str]:
    """Return the names of the sources as they were given: a folder's name, not those of its files."""
    if isinstance(corpus, str | os.PathLike):
        return [os.fspath(corpus)]
    if isinstance(corpus, list | tuple) and not holds_texts(corpus):
        return [os.fspath(each) for each in corpus]
    return [source.name for source in open_corpus(corpus)]
