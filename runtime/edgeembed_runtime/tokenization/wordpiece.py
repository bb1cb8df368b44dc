"""The WordPiece tokenizer of BERT: the tokens are those of the package `tokenizers`, without that package."""

import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from edgeembed_runtime.tokenization.bert_normalizer import SPACES, BertNormalizer, LoneSurrogateError
from edgeembed_runtime.tokenization.tokenizer import TextInfo, Tokens, check_limit, max_characters, surrogate_error
from edgeembed_runtime.tokenization.vocabulary import Vocabulary
from edgeembed_runtime.tokenization.wordpiece_file import WordPiece

if TYPE_CHECKING:
    from edgeembed_runtime.tokenization.shortening import Shorten

Value = TypeVar("Value")
Span = tuple[int, int, int]
"""A token id, and where the token starts and ends in characters."""

# Where every text is split, whatever the settings: a word, as a piece of the text between white space and punctuation.
_SEPARATORS = r"\t\n\r -/:-@\[-`{-~"
_PUNCTUATION = r"[!-/:-@\[-`{-~]"
# A long text may be cut before one of these characters: it ends a word, and no added token contains it.
_CUTS = rf"{SPACES}!-,.:;=?@\\^`{{}}~\u2010-\u2027\u3001-\u3003\u3008-\u3011\uff01-\uff03\uff0c\uff1a\uff1b\uff1f"
_CHINESE = "\u3400-\u4dbf\u4e00-\u9fff"
# Nearly every text with too many tokens has them within this many characters per token of the limit.
_CHARACTERS_PER_TOKEN = 6
_GROWTH = 4
# A language has some ten thousand frequent words. The caches stay below a few megabytes.
_MAX_CACHED_WORDS = 2**14
_MAX_CACHED_CHARACTERS = 64


class WordPieceTokenizer:
    """A tokenizer as BERT's; it truncates and never pads. Threads may share it.

    Runs of white space and of one character are shortened in long texts, if that changes no token (`make_shortener`).

    Args:
        wordpiece: What a tokenizer.json describes.
        max_seq_length: The maximum number of tokens, including special tokens.
        where: The file's path, for messages.
        is_pairs: Whether it tokenizes pairs of texts.

    Raises:
        BundleError: If special tokens alone reach the limit.
    """

    def __init__(self, wordpiece: WordPiece, max_seq_length: int, where: str, *, is_pairs: bool = False) -> None:
        check_limit(max_seq_length, (wordpiece.pair if is_pairs else wordpiece.single).size, where)
        self._wordpiece = wordpiece
        self._limit = max_seq_length
        self._normalizer = BertNormalizer(
            clean_text=wordpiece.clean_text,
            handle_chinese_chars=wordpiece.handle_chinese_chars,
            strip_accents=wordpiece.strip_accents,
            lowercase=wordpiece.lowercase,
        )
        added = "|".join(map(re.escape, wordpiece.added))
        self._words = re.compile(
            rf"[^{_SEPARATORS}]+|{added}|{_PUNCTUATION}" if added else rf"[^{_SEPARATORS}]+|{_PUNCTUATION}"
        )
        self._ids = _Cache(self._ids_of_word)
        self._spans = _Cache(self._spans_of_word)
        self._shorten: Shorten | None = None
        self._cut: re.Pattern[str] | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """The id of each token."""
        return self._wordpiece.vocabulary

    @property
    def unknown_id(self) -> int:
        """The id of the unknown token."""
        return self._wordpiece.unknown

    def tokenize(self, text: str | tuple[str, str]) -> Tokens:
        """Tokenize a text or a pair, as `Tokenizer` describes."""
        if isinstance(text, tuple):
            return self._tokenize_pair(*text)
        before, after = self._wordpiece.single.parts
        room = self._limit - len(before) - len(after)
        ids, _, is_cut = self._read(text, room)
        is_cut = is_cut or len(ids) > room
        read = ids[:room]
        return Tokens([*before, *read, *after], is_cut, read.count(self._wordpiece.unknown))

    def describe(self, text: str) -> TextInfo:
        """Return the tokenization results of a text."""
        room = self._limit - self._wordpiece.single.size
        ids, read, is_cut = self._read(text, room)
        unknown = self._wordpiece.unknown
        pieces = tuple(read[start:end] for number, start, end in self._all_spans(read)[:room] if number == unknown)
        return TextInfo(min(len(ids), room) + self._limit - room, is_cut or len(ids) > room, pieces)

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Return where each token of a text starts and ends, as `Tokenizer` describes."""
        return [(start, end) for _, start, end in self._all_spans(text)]

    def _tokenize_pair(self, first: str, second: str) -> Tokens:
        before, between, after = self._wordpiece.pair.parts
        room = self._limit - self._wordpiece.pair.size
        # Which text is the longer one decides how many tokens are kept of each, so both are read to their ends.
        (first, is_cut), (second, is_second_cut) = self._shortened(first), self._shortened(second)
        ids, second_ids = self._all_ids(first), self._all_ids(second)
        length, second_length = _longest_first(len(ids), len(second_ids), room)
        is_cut = is_cut or is_second_cut or len(ids) + len(second_ids) > room
        read, second_read = ids[:length], second_ids[:second_length]
        unknown = sum(each.count(self._wordpiece.unknown) for each in (read, second_read))
        return Tokens([*before, *read, *between, *second_read, *after], is_cut, unknown)

    def _read(self, text: str, room: int) -> tuple[list[int], str, bool]:
        """Tokenize a text until there are more tokens than fit.

        Args:
            text: The text.
            room: The number of tokens that fit.

        Returns:
            The token ids of the text, or more than fit of its beginning; the part of the text that was read; and
            whether the text was cut before it was tokenized.
        """
        end, is_cut = self._limit * _CHARACTERS_PER_TOKEN, False
        if len(text) > end:
            if len(ids := self._beginning(text, end)) > room:
                return ids, text[:end], False
            text, is_cut = self._shortened(text)
            while (end := end * _GROWTH) < len(text):
                if len(ids := self._beginning(text, end)) > room:
                    return ids, text[:end], is_cut
        return self._all_ids(text), text, is_cut

    def _beginning(self, text: str, end: int) -> list[int]:
        """Return the ids of the first tokens of a text, as far as the text after `end` cannot change them."""
        if self._cut is None:
            chinese = _CHINESE if self._wordpiece.handle_chinese_chars else ""
            self._cut = re.compile(f".*(?=[{_CUTS}{chinese}])", re.DOTALL)
        match = self._cut.match(text, 0, end)
        return [] if match is None else self._all_ids(match[0])

    def _shortened(self, text: str) -> tuple[str, bool]:
        """Return the text that the tokenizer may read, and whether its end was cut off."""
        if len(text) <= self._limit * _CHARACTERS_PER_TOKEN * _GROWTH:
            return text, False
        if self._shorten is None:
            from edgeembed_runtime.tokenization.shortening import make_shortener  # few texts are that long

            self._shorten = make_shortener(self._wordpiece, self._limit)
        return self._shorten(text, max_characters(self._limit))

    def _all_ids(self, text: str) -> list[int]:
        try:
            return list(chain.from_iterable(map(self._ids.__getitem__, self._words.findall(text))))
        except LoneSurrogateError as error:
            raise surrogate_error(text) from error

    def _all_spans(self, text: str) -> list[Span]:
        try:
            return [
                (number, start + word.start(), end + word.start())
                for word in self._words.finditer(text)
                for number, start, end in self._spans[word[0]]
            ]
        except LoneSurrogateError as error:
            raise surrogate_error(text) from error

    def _ids_of_word(self, word: str) -> tuple[int, ...]:
        """Return the token ids of a piece of a text between white space and punctuation, or of an added token."""
        if word in self._wordpiece.added:
            return (self._wordpiece.added[word],)
        vocabulary, longest = self._wordpiece.vocabulary, self._wordpiece.max_word_characters
        ids: list[int] = []
        for each in self._normalizer.normalize(word).split(" "):
            number = vocabulary.find(each)
            if number is not None and 0 < len(each) <= longest:
                ids.append(number)
            elif each:
                ids += [number for number, _ in self._split(each)]
        return tuple(ids)

    def _spans_of_word(self, word: str) -> tuple[Span, ...]:
        """Return the tokens of such a piece, with where they start and end in it."""
        if word in self._wordpiece.added:
            return ((self._wordpiece.added[word], 0, len(word)),)
        spans: list[Span] = []
        characters = self._normalizer.normalize_characters(word)
        start = 0
        for each in "".join(character for character, _ in characters).split(" "):
            first = start
            for number, length in self._pieces(each) if each else ():
                end = start + length
                positions = [position for _, position in characters[first:end]]
                spans.append((number, min(positions), max(positions) + 1))
                first = end
            start += len(each) + 1
        return tuple(spans)

    def _pieces(self, word: str) -> list[tuple[int, int]]:
        """Return the tokens of a normalized word.

        Returns:
            The id of each token and where it ends.
        """
        whole = self._wordpiece.vocabulary.find(word)
        if whole is not None and len(word) <= self._wordpiece.max_word_characters:
            return [(whole, len(word))]
        return self._split(word)

    def _split(self, word: str) -> list[tuple[int, int]]:
        """Split a normalized word that is no token, or too long for one, into the longest tokens from left to right.

        Returns:
            The id of each token and where it ends; the unknown token alone if a part of the word has no token.
        """
        vocabulary, prefix = self._wordpiece.vocabulary, self._wordpiece.prefix
        unknown = [(self._wordpiece.unknown, len(word))]
        if len(word) > self._wordpiece.max_word_characters:
            return unknown
        pieces: list[tuple[int, int]] = []
        start, marker, longest = 0, "", len(word) - 1
        while start < len(word):
            rest = marker + word[start:]
            for length in reversed(vocabulary.lengths[: bisect_right(vocabulary.lengths, longest)]):
                if length > len(marker) and (number := vocabulary.find(rest[:length])) is not None:
                    break
            else:
                return unknown
            start, marker = start + length - len(marker), prefix
            longest = len(prefix) + len(word) - start
            pieces.append((number, start))
        return pieces


class _Cache(dict[str, Value]):
    """A bounded cache of what a function returns for words. Threads may share it."""

    def __init__(self, compute: Callable[[str], Value]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, word: str) -> Value:
        value = self._compute(word)
        if len(word) <= _MAX_CACHED_CHARACTERS:
            if len(self) >= _MAX_CACHED_WORDS:
                self.clear()
            self[word] = value
        return value


def _longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many tokens of two texts to keep, if tokens are removed from the longer text first.

    If both texts are longer than half of the room, each gets a half, the second text the larger one, as in the package
    `tokenizers`.
    """
    if first + second <= room:
        return first, second
    shorter, half = min(first, second), room // 2
    if shorter <= half:
        longer = room - shorter
        return (shorter, longer) if first <= second else (longer, shorter)
    return (half, room - half) if first <= second else (room - half, half)
