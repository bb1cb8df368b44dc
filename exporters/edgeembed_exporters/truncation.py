"""Tokenizers that read whole texts."""

from tokenizers import Tokenizer


def without_truncation(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy that neither truncates nor pads."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy
