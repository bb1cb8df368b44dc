"""Texts to encode: sentences from Python's docstrings, and texts of given lengths for the length sweep."""

import bisect
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence

_DOCUMENTED = ("argparse", "collections", "csv", "email.message", "json", "pathlib", "random", "re", "shutil", "socket")

TokenCounter = Callable[[Sequence[str]], list[int] | None]
"""Returns the number of tokens of each text, or None if it cannot count them."""


def docstring_sentences() -> list[str]:
    """Return several hundred different sentences, the first lines of docstrings in Python's standard library."""
    return list(dict.fromkeys(_first_lines()))


def texts_of_lengths(
    texts: Sequence[str], lengths: Sequence[int], per_length: int, count_tokens: TokenCounter
) -> dict[int, list[str]]:
    """Return texts of at most the given numbers of tokens, as long as whole words allow.

    Args:
        texts: Texts whose words are used in order, and repeated if there are too few.
        lengths: Numbers of tokens, special tokens included.
        per_length: Number of texts per length.
        count_tokens: Function that counts the tokens of texts.

    Returns:
        The texts by length; empty if tokens cannot be counted. A length that a single word exceeds is left out.
    """
    words = " ".join(texts).split()
    if not words or not lengths or count_tokens(words[:1]) is None:
        return {}
    words *= -(-(max(lengths) * (per_length + 1)) // len(words))
    by_length: dict[int, list[str]] = {}
    for length in lengths:
        made = [_text_of_length(words[start:], length, count_tokens) for start in range(0, per_length * length, length)]
        if all(made):
            by_length[length] = made
    return by_length


def _first_lines() -> Iterator[str]:
    for name in _DOCUMENTED:
        module = importlib.import_module(name)
        for documented in [module, *vars(module).values()]:
            first, *_ = (inspect.getdoc(documented) or "").splitlines() or [""]
            if len(first.split()) > 2:
                yield first


def _text_of_length(words: Sequence[str], length: int, count_tokens: TokenCounter) -> str:
    # A word has at least one token, so at most `length` words are needed.
    def tokens(number: int) -> int:
        return (count_tokens([" ".join(words[:number])]) or [0])[0]

    return " ".join(words[: bisect.bisect_right(range(1, length + 1), length, key=tokens)])
