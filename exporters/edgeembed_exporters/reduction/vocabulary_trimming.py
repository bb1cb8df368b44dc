"""Trim a model's vocabulary, and its embedding table with it, to the tokens that a corpus needs."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.parity import Parity
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from edgeembed_exporters.gate import encode_each, measure_parity
from edgeembed_exporters.held_out import EVERY
from edgeembed_exporters.reduction.coverage import Coverage, encode_all, measure_coverage
from edgeembed_exporters.reduction.token_table import (
    configured_ids,
    pinned_ids,
    renumber_config,
    replace_tokenizer,
    select_rows,
    token_table,
    tokenizer_of,
)
from edgeembed_exporters.reduction.tokenizer_trimming import count_tokens, trim_to_counts
from edgeembed_exporters.soundness import sound_model

# Enough sentences to find bad ones, and both models encode them in well under a minute.
_MAX_HELD_OUT_TEXTS = 400


@dataclass(frozen=True)
class TrimReport:
    """What trimming saved, and what it costs on text like the corpus.

    The cost is measured on sentences of the corpus with the tokens that the rest of it needs, since a vocabulary has no
    cost on the text that it was trimmed to.

    Attributes:
        before: How the model's tokenizer segments the held-out text.
        after: The size of the trimmed tokenizer, and how one without the tokens of the held-out text segments it.
        saved_bytes: Bytes saved in the float32 embedding table.
        drift: The agreement, on the held-out text, between the model's embeddings and those of a model trimmed without
            it.
    """

    before: Coverage
    after: Coverage
    saved_bytes: int
    drift: Parity

    def __str__(self) -> str:
        """Return what was saved and lost in one line."""
        before, after = self.before, self.after
        return (
            f"vocabulary: {after.size:,} of {before.size:,} tokens kept, {self.saved_bytes / 1e6:.2f} MB of float32 "
            f"saved; unknown tokens {_percent(before.unknown_rate)} -> {_percent(after.unknown_rate)}, tokens per word "
            f"{before.tokens_per_word:.3f} -> {after.tokens_per_word:.3f}, cosine to the whole model worst "
            f"{self.drift.min_cosine:.4f}, mean {self.drift.mean_cosine:.4f}"
        )


def trim_vocabulary(
    model: SentenceTransformer, sentences: Iterable[str], *, size: int | None = None, held_out: Sequence[str] = ()
) -> tuple[SentenceTransformer, TrimReport]:
    """Return a copy of a model whose tokenizer and embedding table have only the tokens that a corpus needs.

    A text whose tokens are all kept has the same embedding as before. In other texts, words whose token was removed are
    split into smaller pieces. `tokenizer_trimming.trim_tokenizer` describes which tokens are kept.

    Args:
        model: A transformers encoder or a StaticEmbedding, with a WordPiece, BPE or Unigram tokenizer; it is not
            changed. Tokens of its prompts are kept.
        sentences: The corpus; it is read once and may be larger than memory.
        size: Maximum vocabulary size, including special tokens. None keeps all tokens that the corpus uses.
        held_out: Text to measure on, which is no part of the corpus. If empty, one sentence of the corpus in eight, at
            most 400, is measured with the tokens of the others; the returned model has the tokens of all.

    Returns:
        The trimmed model, and what trimming saved and cost.

    Raises:
        InputError: If the model's tokenizer or table cannot be trimmed, `size` is too small for special tokens and
            characters, or there is too little text.
    """
    if isinstance(sentences, str) or isinstance(held_out, str):
        raise InputError("the text is a single string; expected several sentences: put it into a list")
    model = sound_model(model)
    first: Any = model[0]
    tokenizer, table = tokenizer_of(first), token_table(first)
    held_out_texts = [text for text in held_out if text.strip()]
    is_held_out = not held_out_texts
    counts = count_tokens(tokenizer, _hold_out(sentences, held_out_texts) if is_held_out else sentences)
    if not held_out_texts:
        raise InputError(
            f"there are no sentences to measure on; expected at least {EVERY} sentences, or some in held_out"
        )
    keep = configured_ids(first, table) | _prompt_ids(model, tokenizer)
    all_counts = counts + count_tokens(tokenizer, held_out_texts) if is_held_out else counts
    trimmed, measured = (
        trim_to_counts(tokenizer, each, size=size, keep=keep, pinned=pinned_ids(first)) for each in (all_counts, counts)
    )
    made = _with_tokenizer(model, trimmed)
    before, found = measure_coverage(tokenizer, held_out_texts), measure_coverage(measured, held_out_texts)
    report = TrimReport(
        before=before,
        after=replace(found, size=trimmed.get_vocab_size(), size_bytes=len(trimmed.to_str().encode())),
        saved_bytes=4 * (table.weight.numel() - token_table(made[0]).weight.numel()),
        drift=_measure_drift(model, _with_tokenizer(model, measured), held_out_texts),
    )
    return made, report


def with_vocabulary(model: SentenceTransformer, tokenizer: Tokenizer) -> SentenceTransformer:
    """Return a copy of a model with a tokenizer that was trimmed from its own.

    Args:
        model: As for `trim_vocabulary`.
        tokenizer: The trimmed tokenizer.

    Raises:
        InputError: If the tokenizer has tokens that the model's tokenizer does not have.
    """
    known = tokenizer_of(model[0]).get_vocab()
    foreign = sorted(token for token in tokenizer.get_vocab() if token not in known)
    if foreign:
        raise InputError(
            f"the vocabulary has {len(foreign):,} tokens that the model has no vectors for, such as {foreign[0]!r}; "
            "expected one trimmed from the model's: make it with `edgeembed vocab --trim MODEL`"
        )
    return _with_tokenizer(model, tokenizer)


def _hold_out(sentences: Iterable[str], held_out: list[str]) -> Iterator[str]:
    """Yield most sentences, and hold out the others, evenly spaced and never more than the maximum."""
    every = EVERY
    texts = (text for text in sentences if text.strip())
    for number, text in enumerate(texts, start=1):
        if number % every:
            yield text
            continue
        held_out.append(text)
        if len(held_out) > _MAX_HELD_OUT_TEXTS:
            yield from held_out[::2]
            del held_out[::2]
            every *= 2


def _prompt_ids(model: SentenceTransformer, tokenizer: Tokenizer) -> set[int]:
    prompts = [text for text in model.prompts.values() if text]
    return {index for encoding in encode_all(tokenizer, prompts) for index in encoding.ids}


def _with_tokenizer(model: SentenceTransformer, tokenizer: Tokenizer) -> SentenceTransformer:
    """Return a copy of a model with another tokenizer, and the rows of its tokens in the embedding table."""
    table = token_table(model[0])
    made = copy.deepcopy(model, {id(table.weight): table.weight})  # do not copy the table, most of whose rows are lost
    ids = tokenizer_of(model[0]).get_vocab()
    rows = [ids[token] for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    select_rows(made[0], token_table(made[0]), rows)
    renumber_config(made[0], {row: index for index, row in enumerate(rows)})
    replace_tokenizer(made[0], tokenizer)
    return made


def _measure_drift(model: SentenceTransformer, made: SentenceTransformer, texts: Sequence[str]) -> Parity:
    return measure_parity(texts, encode_each(model, texts), encode_each(made, texts))


def _percent(rate: float | None) -> str:
    return "none" if rate is None else f"{rate:.2%}"
