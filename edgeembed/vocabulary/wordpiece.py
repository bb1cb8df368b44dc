"""What the vocabulary tools need to know of a WordPiece tokenizer."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from edgeembed_runtime.errors import InputError
from tokenizers import Encoding, Tokenizer

PREFIX = "##"
"""Marks a token that continues a word."""


def description(tokenizer: Tokenizer) -> dict[str, Any]:
    """Give the tokenizer as its JSON file says it, as a new dictionary."""
    described: dict[str, Any] = json.loads(tokenizer.to_str())
    return described


def expect_wordpiece(tokenizer: Tokenizer, name: str) -> dict[str, Any]:
    """Give the description of a WordPiece tokenizer that marks continuations with `##`.

    Args:
        tokenizer: The tokenizer.
        name: What errors call it.

    Raises:
        InputError: If it is of another kind (BPE, Unigram, WordLevel) or marks continuations otherwise.
    """
    described = description(tokenizer)
    model = described["model"]
    if model["type"] != "WordPiece" or model["continuing_subword_prefix"] != PREFIX:
        raise InputError(
            f"{name} is a {model['type']} tokenizer; expected WordPiece with the prefix {PREFIX}: "
            "choose a BERT-like model"
        )
    return described


def untruncated(tokenizer: Tokenizer) -> Tokenizer:
    """Give a copy that neither truncates nor pads."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy


def encode_all(tokenizer: Tokenizer, sentences: Iterable[str]) -> Iterator[Encoding]:
    """Give each sentence's encoding without special tokens, a batch in memory at a time."""
    whole = untruncated(tokenizer)
    for batch in _batches(sentences, size=2048):
        yield from whole.encode_batch_fast(batch, add_special_tokens=False)


def _batches(items: Iterable[str], size: int) -> Iterator[Sequence[str]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
