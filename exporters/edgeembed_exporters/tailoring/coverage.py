"""What a vocabulary covers of a text, and what it costs."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer

from edgeembed_exporters.tailoring.encodings import description, encode_all


@dataclass(frozen=True)
class Coverage:
    """How a tokenizer cuts a text.

    Attributes:
        size: Tokens in the vocabulary, special ones included.
        size_bytes: Bytes of the tokenizer as a compact JSON file.
        sentences: Sentences measured.
        words: Their words, which white space separates, so that tokenizers can be compared.
        tokens: The tokens that they became, special ones not counted.
        unknown_rate: Share of those tokens that are the unknown token; none if the tokenizer has no such one.
        tokens_per_word: Tokens for each word: what a small vocabulary costs in time.
        tokens_per_sentence: Tokens for each sentence, special ones not counted.
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
        """Give the attributes by name, ready for JSON."""
        return asdict(self)


def measure_coverage(tokenizer: Tokenizer, sentences: Iterable[str]) -> Coverage:
    """Tell how a tokenizer cuts a text; truncation and padding are not applied.

    Args:
        tokenizer: A tokenizer of any kind.
        sentences: The text, best one that the vocabulary was not made from.

    Raises:
        InputError: If there is no word in the text.
    """
    texts = list(sentences)
    words = sum(len(text.split()) for text in texts)
    if not words:
        raise InputError("there is no text to measure a vocabulary on; expected at least one word")
    unknown_token = unknown_id(tokenizer)
    tokens = unknown = 0
    for encoding in encode_all(tokenizer, texts):
        tokens += len(encoding.ids)
        unknown += encoding.ids.count(unknown_token)
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
    """Give the id of a tokenizer's unknown token; None if it has no such one."""
    model = description(tokenizer)["model"]
    if model.get("unk_token") is not None:
        unknown: int | None = tokenizer.token_to_id(model["unk_token"])
        return unknown
    by_id: int | None = model.get("unk_id")  # Unigram names it by id
    return by_id
