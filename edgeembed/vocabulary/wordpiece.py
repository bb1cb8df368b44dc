"""What the vocabulary tools need to know of a WordPiece tokenizer."""

from typing import Any

from edgeembed_exporters.tailoring.encodings import description
from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer

PREFIX = "##"
"""Marks a token that continues a word."""


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
