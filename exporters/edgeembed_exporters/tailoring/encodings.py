"""What the vocabulary tools read from a tokenizer: its description, and how it cuts a text."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from tokenizers import Encoding, Tokenizer

_BATCH = 2048


def description(tokenizer: Tokenizer) -> dict[str, Any]:
    """Give the tokenizer as its JSON file says it, as a new dictionary."""
    described: dict[str, Any] = json.loads(tokenizer.to_str())
    return described


def encode_all(tokenizer: Tokenizer, sentences: Iterable[str]) -> Iterator[Encoding]:
    """Give each sentence's whole encoding without special tokens, a batch in memory at a time."""
    whole = untruncated(tokenizer)
    for batch in _batches(sentences):
        yield from whole.encode_batch_fast(batch, add_special_tokens=False)


def untruncated(tokenizer: Tokenizer) -> Tokenizer:
    """Give a copy that neither truncates nor pads."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy


def _batches(items: Iterable[str]) -> Iterator[Sequence[str]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch
