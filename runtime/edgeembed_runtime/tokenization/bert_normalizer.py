"""Normalize texts as BERT's normalizer and pre-tokenizer do, one character at a time.

The tables of characters are those of the Rust package `tokenizers`, not those of Python's `unicodedata`, which differ
between Python's versions; `python -m experiments.runtime.unicode_table` writes them.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from operator import itemgetter
from typing import NamedTuple

SPACES = " \t\n\r\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""The characters that separate words whatever the settings, as a regex character class."""

# The starts and ends of the ranges that `tokenizers` counts as Chinese characters, and of white space.
_CHINESE = (
    *(0x3400, 0x4DC0, 0x4E00, 0xA000, 0xF900, 0xFB00, 0x20000, 0x2A6E0),
    *(0x2A700, 0x2B820, 0x2B920, 0x2CEB0, 0x2F800, 0x2FA20),
)
_WHITE_SPACE = (
    *(0x9, 0xE, 0x20, 0x21, 0x85, 0x86, 0xA0, 0xA1, 0x1680, 0x1681),
    *(0x2000, 0x200B, 0x2028, 0x202A, 0x202F, 0x2030, 0x205F, 0x2060, 0x3000, 0x3001),
)
# The decomposition of Hangul syllables: Unicode, section 3.12.
_HANGUL, _HANGUL_END = 0xAC00, 0xD7A4
_LEADING, _VOWEL, _TRAILING = 0x1100, 0x1161, 0x11A7
_VOWELS, _TRAILINGS = 21, 28
_SURROGATES = range(0xD800, 0xE000)
# A text has at most some thousand different characters. More would be an attempt to fill the memory.
_MAX_CHARACTERS = 2**15


class LoneSurrogateError(Exception):
    """Raised for half of a surrogate pair, which is not a character."""


class _UnicodeTable(NamedTuple):
    """The properties of characters. Sets of characters are the starts and ends of their ranges, in ascending order.

    Attributes:
        removed: The control characters that `clean_text` removes.
        marks: The nonspacing marks that `strip_accents` removes.
        punctuation: Punctuation.
        decomposed: The canonical decomposition (NFD) of characters, without nonspacing marks.
        lowercase: The lowercase of characters.
        combining_class: The order in which NFD sorts adjacent marks.
    """

    removed: Sequence[int]
    marks: Sequence[int]
    punctuation: Sequence[int]
    decomposed: dict[str, str]
    lowercase: dict[str, str]
    combining_class: dict[str, int]


class BertNormalizer(dict[int, str]):
    """A table for `str.translate` that normalizes a text and puts spaces where it is split into words.

    Args:
        clean_text: Whether to remove control characters.
        handle_chinese_chars: Whether Chinese characters are words of their own.
        strip_accents: Whether to decompose characters and remove accents.
        lowercase: Whether to lowercase the text.
    """

    def __init__(self, *, clean_text: bool, handle_chinese_chars: bool, strip_accents: bool, lowercase: bool) -> None:
        super().__init__()
        self._clean_text = clean_text
        self._handle_chinese_chars = handle_chinese_chars
        self._strip_accents = strip_accents
        self._lowercase = lowercase

    def normalize(self, text: str) -> str:
        """Return the normalized words of a text, separated by spaces.

        Words of ASCII letters and digits and ASCII punctuation, which most texts consist of, do without the table of
        characters, so that a process starts faster.

        Raises:
            LoneSurrogateError: If the text contains a lone surrogate.
        """
        if text.isascii() and (text.isalnum() or (len(text) == 1 and text.isprintable())):
            return text.lower() if self._lowercase else text
        if self._movable.isdisjoint(text):
            return text.translate(self)
        return "".join(character for character, _ in self.normalize_characters(text))

    def normalize_characters(self, text: str) -> list[tuple[str, int]]:
        """Return the characters of the normalized text, each with the position of the character that it came from.

        Raises:
            LoneSurrogateError: If the text contains a lone surrogate.
        """
        table = _unicode_table()
        result: list[tuple[str, int]] = []
        marks: list[tuple[int, str, int]] = []  # adjacent marks: combining class, mark, position
        for position, character in enumerate(text):
            normalized = self[ord(character)]
            if not normalized and self._clean_text and _in(table.removed, ord(character)):
                continue
            for each in normalized or character:
                combining_class = table.combining_class.get(each, 0) if self._strip_accents else 0
                if not combining_class:
                    result += _in_order(marks)
                    marks.clear()
                if not normalized:
                    continue
                if combining_class:
                    marks.append((combining_class, each, position))
                else:
                    result.append((each, position))
        return result + _in_order(marks)

    @cached_property
    def _movable(self) -> set[str]:
        """The marks that are not removed. NFD may change their order."""
        table = _unicode_table()
        return {c for c in table.combining_class if not _in(table.marks, ord(c))} if self._strip_accents else set()

    def __missing__(self, code: int) -> str:
        """Return what replaces a character."""
        replacement = self._normalize(code)
        if len(self) < _MAX_CHARACTERS:
            self[code] = replacement
        return replacement

    def _normalize(self, code: int) -> str:
        if code in _SURROGATES:
            raise LoneSurrogateError
        table, text = _unicode_table(), chr(code)
        if _in(_WHITE_SPACE, code) and not (self._clean_text and _in(table.removed, code)):
            return " "
        if self._clean_text and _in(table.removed, code):
            return ""
        if self._strip_accents:
            text = _strip_accents(table, code)
        if self._lowercase:
            text = "".join(table.lowercase.get(each, each) for each in text)
        text = "".join(f" {each} " if _in(table.punctuation, ord(each)) else each for each in text)
        return f" {text} " if self._handle_chinese_chars and _in(_CHINESE, code) else text


def _in_order(marks: Iterable[tuple[int, str, int]]) -> list[tuple[str, int]]:
    """Return adjacent marks in the order of NFD: by combining class, and otherwise as they were."""
    return [(mark, position) for _, mark, position in sorted(marks, key=itemgetter(0))]


def _strip_accents(table: _UnicodeTable, code: int) -> str:
    """Return the canonical decomposition of a character without nonspacing marks."""
    if _in(table.marks, code):
        return ""
    if not _HANGUL <= code < _HANGUL_END:
        return table.decomposed.get(chr(code), chr(code))
    syllable, trailing = divmod(code - _HANGUL, _TRAILINGS)
    leading, vowel = divmod(syllable, _VOWELS)
    return chr(_LEADING + leading) + chr(_VOWEL + vowel) + (chr(_TRAILING + trailing) if trailing else "")


def _in(ranges: Sequence[int], code: int) -> bool:
    return bisect_right(ranges, code) % 2 == 1


@cache
def _unicode_table() -> _UnicodeTable:
    # Imported here, because ASCII text needs none of it.
    import binascii
    import json
    import zlib

    from edgeembed_runtime.tokenization.unicode_table import TABLE

    content = json.loads(zlib.decompress(binascii.a2b_base64(TABLE)))
    return _UnicodeTable(
        removed=_sums(content["removed"]),
        marks=_sums(content["marks"]),
        punctuation=_sums(content["punctuation"]),
        decomposed=_mapping(content["decomposed"]),
        lowercase=_mapping(content["lowercase"]),
        combining_class=_combining_classes(content["combining_class"]),
    )


def _sums(differences: Sequence[int]) -> list[int]:
    """Return the numbers whose differences these are."""
    total, sums = 0, []
    for difference in differences:
        total += difference
        sums.append(total)
    return sums


def _mapping(runs: Sequence[Sequence[int]]) -> dict[str, str]:
    """Return what replaces each character.

    Args:
        runs: The first character of each run, as the difference to that of the run before; the distance between its
            characters; their number; what is added to each to get its replacement; and further characters of it.
    """
    mapping, first = {}, 0
    for difference, step, count, offset, *more in runs:
        first += difference
        for code in range(first, first + step * count, step):
            mapping[chr(code)] = chr(code + offset) + "".join(map(chr, more))
    return mapping


def _combining_classes(runs: Sequence[Sequence[int]]) -> dict[str, int]:
    """Return the class of each mark.

    Args:
        runs: The first character of each run, as the difference to the end of the run before; the number of its
            characters; and their class.
    """
    classes, end = {}, 0
    for difference, count, combining_class in runs:
        start, end = end + difference, end + difference + count
        classes.update(dict.fromkeys(map(chr, range(start, end)), combining_class))
    return classes
