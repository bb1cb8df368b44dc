"""Shorten long runs of characters without changing a text's tokens."""

import re
from collections.abc import Callable

from edgeembed_runtime.tokenization.bert_normalizer import SPACES
from edgeembed_runtime.tokenization.wordpiece_file import MAX_ADDED_TOKEN_CHARACTERS, WordPiece

# Characters that `clean_text` removes.
_REMOVED = "\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufffd"


Shorten = Callable[[str, int], tuple[str, bool]]


def make_shortener(wordpiece: WordPiece, max_seq_length: int) -> Shorten:
    """Return a function that cuts a text and shortens long runs of characters, without changing its tokens.

    These are runs of white space and of characters that the normalizer removes; and runs of one character, or of ASCII
    letters and digits, that are longer than both the longest word that WordPiece reads and the maximum number of
    tokens.

    Args:
        wordpiece: The tokenizer.
        max_seq_length: The maximum number of tokens.

    Returns:
        A function of a text and a maximum number of characters. It returns a text with the same tokens as the
        beginning of the given text, and whether the end was cut off.
    """
    blank = SPACES + _REMOVED if wordpiece.clean_text else SPACES
    kept = max(wordpiece.max_word_characters, max_seq_length, MAX_ADDED_TOKEN_CHARACTERS) + 1
    run = re.compile(
        rf"(?P<blank>[{blank}]{{2,}})|(?P<same>(?P<one>.)(?P=one){{{kept},}})|[0-9A-Za-z]{{{kept + 1},}}", re.DOTALL
    )
    rest_of_blank, rest_of_word = re.compile(f"[{blank}]*"), re.compile("[0-9A-Za-z]*")
    space = re.compile(f"[{SPACES}]")

    def shorten(text: str, max_characters: int) -> tuple[str, bool]:
        pieces: list[str] = []
        position, remaining = 0, max_characters
        while position < len(text) and remaining > 0:
            match = run.search(text, position, position + remaining)
            if match is None:
                pieces.append(text[position : position + remaining])
                position += remaining
                break
            if match["blank"]:
                end = _end(rest_of_blank, text, match.end())
                # If there is no space among them, the normalizer removes all of these characters, so one is enough.
                short = " " if space.search(text, match.start(), end) else match[0][0]
            else:
                rest = re.compile(f"{re.escape(match['one'])}*") if match["same"] else rest_of_word
                end, short = _end(rest, text, match.end()), match[0][:kept]
            pieces += text[position : match.start()], short
            remaining -= match.start() - position + len(short)
            position = end
        return "".join(pieces), position < len(text)

    return shorten


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()
