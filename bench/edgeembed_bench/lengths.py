"""Texts of given numbers of tokens, made of real sentences, for a sweep over lengths."""

import bisect
from collections.abc import Callable, Sequence

Count = Callable[[Sequence[str]], list[int] | None]
"""Gives the number of tokens of each text, or None if it cannot."""


def texts_of_lengths(texts: Sequence[str], lengths: Sequence[int], wanted: int, count: Count) -> dict[int, list[str]]:
    """Make texts that have some lengths, or as little less as words allow.

    Args:
        texts: Real sentences; their words are used in order, and again where there are too few.
        lengths: Numbers of tokens, those that begin and end a text included.
        wanted: Texts of each length.
        count: Counts tokens.

    Returns:
        The texts by length; nothing if tokens cannot be counted. A length that one word already exceeds is left out.
    """
    words = " ".join(texts).split()
    if not words or not lengths or count(words[:1]) is None:
        return {}
    words *= -(-(max(lengths) * (wanted + 1)) // len(words))
    found: dict[int, list[str]] = {}
    for length in lengths:
        made = [_text(words[start:], length, count) for start in range(0, wanted * length, length)]
        if all(made):
            found[length] = made
    return found


def _text(words: Sequence[str], length: int, count: Count) -> str:
    # A word has at least one token, so that as many words as tokens are enough to choose from.
    def tokens(number: int) -> int:
        return (count([" ".join(words[:number])]) or [0])[0]

    return " ".join(words[: bisect.bisect_right(range(1, length + 1), length, key=tokens)])
