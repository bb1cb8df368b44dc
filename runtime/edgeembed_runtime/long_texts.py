"""Shorten a long text without changing its tokens, so that tokenizing it takes bounded time."""

import json
import re
from collections.abc import Callable

import tokenizers

Shorten = Callable[[str, int], tuple[str, bool]]

# Characters that BertNormalizer replaces by a space or BertPreTokenizer splits at; and characters that BertNormalizer
# removes if `clean_text` is set.
_SPACES = " \t\n\r\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_REMOVED = "\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufffd"
# Added tokens such as [PAD] and <mask>, which cannot be part of a shortened run.
_ORDINARY_TOKEN = re.compile(r"\[[\w-]{1,60}\]|<[/\w|-]{1,60}>", re.ASCII)
_MAX_ADDED_TOKEN_CHARACTERS = 64


def make_shortener(tokenizer: tokenizers.Tokenizer, max_seq_length: int) -> Shorten:
    """Return a function that cuts a text and shortens long runs of characters, without changing its tokens.

    Runs are shortened only for BERT's pipeline (BertNormalizer, BertPreTokenizer, WordPiece), which the encoders in the
    wheel use. These are runs of white space and of characters that the normalizer removes; and runs of one character,
    or of ASCII letters and digits, that are longer than both the longest word that WordPiece reads and the maximum
    number of tokens. With other pipelines, a shorter run could change the tokens, and the text is only cut.

    Args:
        tokenizer: The tokenizer.
        max_seq_length: The maximum number of tokens.

    Returns:
        A function of a text and a maximum number of characters. It returns a text with the same tokens as the
        beginning of the given text, and whether the end was cut off.
    """
    blank = _blank_characters(tokenizer)
    if blank is None:
        return lambda text, max_characters: (text[:max_characters], len(text) > max_characters)
    kept = max(tokenizer.model.max_input_chars_per_word, max_seq_length, _MAX_ADDED_TOKEN_CHARACTERS) + 1
    run = re.compile(
        rf"(?P<blank>[{blank}]{{2,}})|(?P<same>(?P<one>.)(?P=one){{{kept},}})|[0-9A-Za-z]{{{kept + 1},}}", re.DOTALL
    )
    rest_of_blank, rest_of_word = re.compile(f"[{blank}]*"), re.compile("[0-9A-Za-z]*")
    space = re.compile(f"[{_SPACES}]")

    def shorten(text: str, max_characters: int) -> tuple[str, bool]:
        pieces: list[str] = []
        position, remaining = 0, max_characters
        while position < len(text) and remaining > 0:
            found = run.search(text, position, position + remaining)
            if found is None:
                pieces.append(text[position : position + remaining])
                position += remaining
                break
            if found["blank"]:
                end = _end(rest_of_blank, text, found.end())
                # If there is no space among them, the normalizer removes all of these characters, so one is enough.
                short = " " if space.search(text, found.start(), end) else found[0][0]
            else:
                rest = re.compile(f"{re.escape(found['one'])}*") if found["same"] else rest_of_word
                end, short = _end(rest, text, found.end()), found[0][:kept]
            pieces += text[position : found.start()], short
            remaining -= found.start() - position + len(short)
            position = end
        return "".join(pieces), position < len(text)

    return shorten


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return position if found is None else found.end()


def _blank_characters(tokenizer: tokenizers.Tokenizer) -> str | None:
    """Return the characters that separate words, as a regex character class; None for another pipeline."""
    parts = (tokenizer.normalizer, tokenizer.pre_tokenizer)
    normalizer, pre_tokenizer = (json.loads(part.__getstate__()) if part is not None else {} for part in parts)
    if (
        normalizer.get("type") != "BertNormalizer"
        or pre_tokenizer.get("type") != "BertPreTokenizer"
        or not isinstance(tokenizer.model, tokenizers.models.WordPiece)
    ):
        return None
    for token in tokenizer.get_added_tokens_decoder().values():
        if token.normalized or not _ORDINARY_TOKEN.fullmatch(token.content):
            return None
    return _SPACES + _REMOVED if normalizer["clean_text"] else _SPACES
