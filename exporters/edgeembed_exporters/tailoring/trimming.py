"""A model with only the tokens that a corpus needs."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import Parity
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from edgeembed_exporters.gate import measure_parity
from edgeembed_exporters.tailoring.coverage import Coverage, measure_coverage
from edgeembed_exporters.tailoring.encodings import encode_all
from edgeembed_exporters.tailoring.token_table import (
    counted_ids,
    cut_table,
    named_ids,
    renumber_config,
    replace_tokenizer,
    token_table,
    tokenizer_of,
)
from edgeembed_exporters.tailoring.vocabulary import trim_tokenizer

_HELD_OUT_SHARE = 8
# Enough that the worst of them tells, and read by both models in well under a minute.
_MOST_HELD_OUT = 400


@dataclass(frozen=True)
class TrimReport:
    """What a model lost and saved by trimming, measured on text that its tokens were not chosen by.

    Attributes:
        before: How the model's tokenizer cuts the text.
        after: How the trimmed one does; their sizes are the tokens before and kept.
        saved_bytes: By how much the table of token embeddings became smaller, in float32.
        drift: How close the trimmed model's vectors are to the model's.
    """

    before: Coverage
    after: Coverage
    saved_bytes: int
    drift: Parity


def trim_to(
    model: SentenceTransformer, sentences: Iterable[str], *, size: int | None = None, held_out: Sequence[str] = ()
) -> tuple[SentenceTransformer, TrimReport]:
    """Give a copy of a model whose tokenizer and token table are cut to what a corpus needs.

    A text whose tokens were all kept has the vector that it had. In other texts, words whose token was cut fall
    into smaller pieces; which tokens are kept, `trim_tokenizer` says.

    Args:
        model: A model of a transformers encoder or a StaticEmbedding, with a WordPiece, BPE or Unigram
            tokenizer; it is not changed.
        sentences: The corpus; it is read once and may be larger than memory.
        size: How many tokens to keep, special ones included. None keeps all that the corpus uses.
        held_out: Text to measure on. Without it, one sentence in eight is held out of the corpus, thinned out
            evenly to 400 at the most.

    Returns:
        The trimmed model, and what trimming did.

    Raises:
        InputError: If the model's tokenizer or table cannot be trimmed, `size` has no room for special tokens and
            characters, or there is too little text.
    """
    if isinstance(sentences, str) or isinstance(held_out, str):
        raise InputError("a single text was given; expected several: put it into a list")
    first: Any = model[0]
    tokenizer, table = tokenizer_of(first), token_table(first)
    held = [text for text in held_out if text.strip()]
    trimmed = trim_tokenizer(
        tokenizer,
        sentences if held else _hold_out(sentences, held),
        size=size,
        keep=named_ids(first, table) | _prompt_ids(model, tokenizer),
        pinned=counted_ids(first),
    )
    if not held:
        raise InputError(f"there are no sentences to measure on; expected at least {_HELD_OUT_SHARE}, or some held out")
    made = _with_tokenizer(model, trimmed)
    saved_bytes = 4 * (table.weight.numel() - token_table(made[0]).weight.numel())
    before, after = measure_coverage(tokenizer, held), measure_coverage(trimmed, held)
    return made, TrimReport(before, after, saved_bytes, _measure_drift(model, made, held))


def with_vocabulary(model: SentenceTransformer, tokenizer: Tokenizer) -> SentenceTransformer:
    """Give a copy of a model with a vocabulary that was cut from its own before.

    Args:
        model: As for `trim_to`.
        tokenizer: The trimmed tokenizer.

    Raises:
        InputError: If the tokenizer has a token that the model's has not.
    """
    known = tokenizer_of(model[0]).get_vocab()
    foreign = sorted(token for token in tokenizer.get_vocab() if token not in known)
    if foreign:
        raise InputError(
            f"the vocabulary has {len(foreign):,} tokens that the model has no vectors for, such as {foreign[0]!r}; "
            "expected one that was cut from the model's: make it with `edgeembed vocab --trim MODEL`"
        )
    return _with_tokenizer(model, tokenizer)


def _hold_out(sentences: Iterable[str], held: list[str]) -> Iterator[str]:
    """Give most sentences and put the others into a list: never more than is measured, evenly from all of them."""
    share = _HELD_OUT_SHARE
    texts = (text for text in sentences if text.strip())
    for number, text in enumerate(texts, start=1):
        if number % share:
            yield text
            continue
        held.append(text)
        if len(held) > _MOST_HELD_OUT:
            yield from held[::2]
            del held[::2]
            share *= 2


def _prompt_ids(model: SentenceTransformer, tokenizer: Tokenizer) -> set[int]:
    prompts = [text for text in model.prompts.values() if text]
    return {index for encoding in encode_all(tokenizer, prompts) for index in encoding.ids}


def _with_tokenizer(model: SentenceTransformer, tokenizer: Tokenizer) -> SentenceTransformer:
    """Give a copy of a model with another tokenizer, all of whose tokens the model's has, and their embeddings."""
    table = token_table(model[0])
    made = copy.deepcopy(model, {id(table.weight): table.weight})  # the whole table would be copied in vain
    source = tokenizer_of(model[0]).get_vocab()
    rows = [source[token] for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    cut_table(made[0], token_table(made[0]), rows)
    renumber_config(made[0], {row: index for index, row in enumerate(rows)})
    replace_tokenizer(made[0], tokenizer)
    return made


def _measure_drift(model: SentenceTransformer, made: SentenceTransformer, texts: Sequence[str]) -> Parity:
    expected, given = (
        each.encode(list(texts), convert_to_numpy=True, show_progress_bar=False) for each in (model, made)
    )
    return measure_parity(texts, expected, given)
