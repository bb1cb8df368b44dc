"""Split long documents into overlapping passages that an encoder reads as a whole."""

import re
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._validation import is_positive_int
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.json_fields import JsonFields
from edgeembed_runtime.tokenization.tokenizer import Tokenizer

Span = tuple[int, int]

_DEFAULT_TOKENS = 128

# A passage has at most this many characters per token, so that the tokenizer reads it as a whole.
_CHARACTERS_PER_TOKEN = 16
# Characters that are tokenized at a time, up to the last white space among them.
_SEGMENT = 1 << 14
# A passage ends in the last quarter of its window if a paragraph or sentence ends there.
_SEARCHED_SHARE = 4
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*(?=\n)")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？]|\n")  # noqa: RUF001
_WORD_END = re.compile(r"\S(?=\s)")
_NOT_SPACE = re.compile(r"\S")
_ENDS = (_PARAGRAPH_END, _SENTENCE_END, _WORD_END)


@dataclass(frozen=True)
class PassageSettings:
    """How an `Index` splits documents that the encoder cannot read as a whole.

    Attributes:
        max_tokens: The maximum number of tokens of a passage, including special tokens and the prompt for documents. A
            document that has no more is one passage. None, the default, leaves each document whole that the encoder
            can read as a whole, and splits longer ones into passages of 128 tokens, not counting the prompt, or of
            `max_seq_length` if that is less.
        overlap_tokens: The number of tokens at the end of a passage that the next one repeats, so that a statement at
            the border is in one of them as a whole. At most half of a passage is repeated.

    The default was measured with mini on 5,000-word documents of Wikipedia's sentences and of medical answers, among
    64, 128 and 256 tokens, each with an overlap of none, an eighth and a quarter. Passages of 256 tokens find less;
    those of 64 find about as much, and are twice as many. The scores are in docs/results/long-documents.md.

    Raises:
        InputError: If `max_tokens` is not a positive integer, or `overlap_tokens` is not an integer of at least 0.
    """

    max_tokens: int | None = None
    overlap_tokens: int = 32

    def __post_init__(self) -> None:
        """Validate the settings."""
        if self.max_tokens is not None and not is_positive_int(self.max_tokens):
            raise InputError(f"max_tokens is {self.max_tokens!r}, expected a positive integer, or None")
        if self.overlap_tokens != 0 and not is_positive_int(self.overlap_tokens):
            raise InputError(f"overlap_tokens is {self.overlap_tokens!r}, expected an integer of at least 0")

    def limited_to(self, max_tokens: int) -> "PassageSettings":
        """Return the settings for an encoder that reads only so many tokens."""
        return self if self.max_tokens is None else replace(self, max_tokens=min(self.max_tokens, max_tokens))

    @classmethod
    def parse(cls, fields: JsonFields) -> "PassageSettings":
        """Return the settings that `to_json` wrote.

        Raises:
            InputError: If a field is missing or wrong.
        """
        return cls(fields.integer("max_tokens") or None, fields.integer("overlap_tokens"))

    def to_json(self) -> dict[str, int]:
        """Return the settings as JSON fields; `max_tokens` is 0 for None."""
        return {"max_tokens": int(self.max_tokens or 0), "overlap_tokens": int(self.overlap_tokens)}


class PassageSplitter:
    """Splits texts into passages by the token counts of an encoder.

    Args:
        encoder: The encoder of the passages.
        settings: The settings.

    Raises:
        InputError: If `max_tokens` is more than the encoder reads, or leaves no room beside special tokens and prompt.
    """

    def __init__(self, encoder: Encoder, settings: PassageSettings) -> None:
        self._tokenizer: Tokenizer = encoder.tokenizer
        self._prompt = encoder.document_prompt
        used = len(self._tokenizer.tokenize(self._prompt).ids)
        if settings.max_tokens is None:
            prompt_tokens = used - len(self._tokenizer.tokenize("").ids)
            self._whole_limit = encoder.max_seq_length
            self._limit = min(_DEFAULT_TOKENS + prompt_tokens, encoder.max_seq_length)
        else:
            self._whole_limit = self._limit = int(settings.max_tokens)
        if self._limit > encoder.max_seq_length:
            raise InputError(
                f"max_tokens is {self._limit}, expected at most {encoder.max_seq_length}, which {encoder.bundle.name} "
                "reads; choose a lower limit, or None"
            )
        self._room = self._limit - used
        if self._room < 1:
            raise InputError(
                f"max_tokens is {self._limit}, expected more than {used}, the number of special tokens and tokens of "
                "the prompt; choose a higher limit"
            )
        self._overlap = min(settings.overlap_tokens, self._room // 2)
        self._max_characters = self._room * _CHARACTERS_PER_TOKEN

    def split(self, text: str) -> list[Span]:
        """Return the spans of the passages of a text.

        A passage ends after a paragraph, otherwise after a sentence or a line, if one ends in the last quarter of what
        fits; otherwise after a word. It starts with a sentence or a line if one starts among the tokens to repeat. The
        time is linear in the length of the text.

        Args:
            text: The text.

        Returns:
            The first character of each passage and the one after its last, in ascending order: the whole text if it
            fits. Otherwise, passages neither start nor end with white space, and every other character is in one.

        Raises:
            InputError: If the text contains a lone surrogate.
            BundleError: If the tokenizer cannot read the text.
        """
        # Each token has at least one ASCII character, so the text need not be tokenized here.
        if (text.isascii() and len(text) < self._room) or self._fits(text, self._whole_limit):
            return [(0, len(text))]
        offsets = _token_offsets(self._tokenizer, text)
        text_end = len(text.rstrip())
        spans: list[Span] = []
        start = covered = _skip_space(text, 0)
        while covered < text_end:
            end = self._end(text, start, text_end, offsets)
            if end <= covered:  # without room for more than what is repeated
                start = covered
                end = self._end(text, start, text_end, offsets)
            spans.append((start, start + len(text[start:end].rstrip())))
            covered = _skip_space(text, end)
            start = self._next_start(text, start, covered, offsets)
        return spans

    def _fits(self, text: str, limit: int) -> bool:
        tokens = self._tokenizer.tokenize(self._prompt + text)
        return not tokens.truncated and len(tokens.ids) <= limit

    def _end(self, text: str, start: int, text_end: int, offsets: "_Offsets") -> int:
        """Return the end of the longest good passage that starts at a character."""
        end = min(start + self._max_characters, text_end, offsets.end_after(start, self._room, text_end))
        end = _break(text, start, end)
        # The tokens may be others where the passage begins or ends within a word.
        while end - start > 1 and not self._fits(text[start:end], self._limit):
            end = _break(text, start, start + (end - start) * 3 // 4)
        return end

    def _next_start(self, text: str, start: int, covered: int, offsets: "_Offsets") -> int:
        """Return the start of the next passage, which repeats the end of the one before."""
        if not self._overlap:
            return covered
        first = max(offsets.start_before(covered, self._overlap), start + (covered - start + 1) // 2)
        first = _skip_space(text, first)
        for pattern in (_SENTENCE_END, _WORD_END):
            for match in pattern.finditer(text, first, covered):
                start = _skip_space(text, match.end())
                if start < covered:
                    return start
        return first


class _Offsets:
    """The positions of the tokens of a text.

    Args:
        starts: (tokens,), the first character of each, ascending.
        ends: (tokens,), the character after the last of each, ascending.
    """

    def __init__(self, starts: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]) -> None:
        self._starts = starts
        self._ends = ends

    def end_after(self, start: int, count: int, text_end: int) -> int:
        """Return the end of the last of `count` tokens from a character on; `text_end` if there are not more."""
        first = int(np.searchsorted(self._ends, start, side="right"))
        return int(self._ends[first + count - 1]) if first + count < len(self._ends) else text_end

    def start_before(self, end: int, count: int) -> int:
        """Return the start of the first of the last `count` tokens before a character."""
        after = int(np.searchsorted(self._starts, end))
        return int(self._starts[max(0, after - count)]) if after else end


def _token_offsets(tokenizer: Tokenizer, text: str) -> _Offsets:
    """Return the positions of all tokens. The text is tokenized in segments, which bounds the memory."""
    parts: list[npt.NDArray[np.intp]] = []
    position = 0
    while position < len(text):
        end = position + _SEGMENT
        if end < len(text):
            spaces = (text.rfind(space, position + 1, end) for space in " \n")
            end = max(*spaces, -1)
            end = position + _SEGMENT if end < 0 else end
        offsets = np.array(tokenizer.token_offsets(text[position:end]), dtype=np.intp).reshape(-1, 2)
        parts.append(offsets + position)
        position = end
    starts, ends = np.concatenate(parts).T
    return _Offsets(np.maximum.accumulate(starts), np.maximum.accumulate(ends))


def _break(text: str, start: int, end: int) -> int:
    """Return where a passage of at most the characters from `start` to `end` should end."""
    if end >= len(text):
        return end
    searched = max(start + 1, end - (end - start) // _SEARCHED_SHARE)
    for pattern in _ENDS:
        first = start if pattern is _WORD_END else searched
        last = -1
        for match in pattern.finditer(text, first, end + 1):
            if match.end() <= end:
                last = match.end()
        if last > start:
            return last
    return max(end, start + 1)


def _skip_space(text: str, position: int) -> int:
    """Return the position of the next character that is not white space, or the length of the text."""
    match = _NOT_SPACE.search(text, position)
    return len(text) if match is None else match.start()
