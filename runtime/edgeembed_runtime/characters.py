"""Which characters say something, and which are invisible."""

import re
import unicodedata

IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""The characters with the Unicode property Default_Ignorable_Code_Point, which have no glyph, as a regex class."""

# Letters and digits, except for the fillers of Hangul syllables, which are invisible.
_LETTER_OR_DIGIT = re.compile(r"[^\W_\u115f\u1160\u3164\uffa0]")
_SYMBOLS = {"Sc", "Sm", "So"}
# Symbols by their category that only draw lines and brackets, are blank, or stand for something that was lost.
_EMPTY_SYMBOLS = {*"<=>|~", *map(chr, range(0x2500, 0x25A0)), "\u2800", "\ufffc", "\ufffd"}


def is_blank(text: str) -> bool:
    """Return whether a text says nothing: it has no letter, no digit and no symbol.

    Such a text has no meaning that its embedding could represent. What counts are the characters' Unicode categories:

    - Letters and numbers of all scripts say something, and so do symbols of currency, mathematics and other symbols,
      among them all emoji.
    - White space, control, format, private-use and unassigned characters, marks without a letter, punctuation and
      spacing accents say nothing. Nor do some symbols: < = > | ~ and box drawing, which draw lines and brackets, the
      replacement character U+FFFD, and characters without a glyph.

    Args:
        text: The text.

    Examples:
        >>> [is_blank(text) for text in ("", "\u200b", "...", "C++", "€")]
        [True, True, True, False, False]
    """
    return _LETTER_OR_DIGIT.search(text) is None and not any(map(_is_symbol, set(text)))


def _is_symbol(character: str) -> bool:
    return unicodedata.category(character) in _SYMBOLS and character not in _EMPTY_SYMBOLS
