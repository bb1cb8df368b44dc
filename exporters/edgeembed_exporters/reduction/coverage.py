"""Measure how a tokenizer segments a text."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from edgeembed_runtime.errors import InputError
from tokenizers import Encoding, Tokenizer

from edgeembed_exporters.truncation import without_truncation

_BATCH_SIZE = 2048


@dataclass(frozen=True)
class Coverage:
    """How a tokenizer segments a text.

    Attributes:
        size: Vocabulary size, including special tokens.
        size_bytes: Size of the tokenizer as compact JSON.
        sentences: Number of sentences measured.
        words: Number of words, separated by white space, so that tokenizers can be compared.
        tokens: Number of tokens, without special tokens.
        unknown_rate: Share of unknown tokens; None if the tokenizer has no unknown token.
        tokens_per_word: Mean number of tokens per word. A small vocabulary has a high one, and takes more time.
        tokens_per_sentence: Mean number of tokens per sentence, without special tokens.
    """

    size: int
    size_bytes: int
    sentences: int
    words: int
    tokens: int
    unknown_rate: float | None
    tokens_per_word: float
    tokens_per_sentence: float

    def to_dict(self) -> dict[str, int | float | None]:
        """Return the fields as plain data that JSON can hold."""
        return asdict(self)


def measure_coverage(tokenizer: Tokenizer, sentences: Iterable[str]) -> Coverage:
    """Measure how a tokenizer segments a text, without truncation and padding.

    Args:
        tokenizer: A tokenizer of any kind.
        sentences: The text, preferably text that the vocabulary was not made from.

    Raises:
        InputError: If the text has no words.
    """
    texts = list(sentences)
    words = sum(len(text.split()) for text in texts)
    if not words:
        raise InputError("there is no text to measure a vocabulary on; expected at least one word")
    unknown_token = unknown_id(tokenizer)
    tokens = unknown = 0
    for encoding in encode_all(tokenizer, texts):
        tokens += len(encoding.ids)
        unknown += 0 if unknown_token is None else encoding.ids.count(unknown_token)
    return Coverage(
        size=tokenizer.get_vocab_size(),
        size_bytes=len(tokenizer.to_str().encode()),
        sentences=len(texts),
        words=words,
        tokens=tokens,
        unknown_rate=None if unknown_token is None else unknown / max(tokens, 1),
        tokens_per_word=tokens / words,
        tokens_per_sentence=tokens / len(texts),
    )


def unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id of a tokenizer's unknown token; None if it has none."""
    model = tokenizer_json(tokenizer)["model"]
    if model.get("unk_token") is not None:
        unknown: int | None = tokenizer.token_to_id(model["unk_token"])
        return unknown
    by_id: int | None = model.get("unk_id")  # Unigram stores the id
    return by_id


def tokenizer_json(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the content of a tokenizer's tokenizer.json as a new dictionary."""
    content: dict[str, Any] = json.loads(tokenizer.to_str())
    return content


def encode_all(tokenizer: Tokenizer, sentences: Iterable[str]) -> Iterator[Encoding]:
    """Tokenize sentences without truncation and special tokens, with one batch in memory at a time."""
    whole, remaining = without_truncation(tokenizer), iter(sentences)
    while batch := list(islice(remaining, _BATCH_SIZE)):
        yield from whole.encode_batch_fast(batch, add_special_tokens=False)
