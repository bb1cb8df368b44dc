"""Keyword search: BM25 scores of texts, computed by the package bm25s."""

import logging
import re
import unicodedata
from collections.abc import Iterable
from types import ModuleType
from typing import cast

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.characters import IGNORABLE
from edgeembed_runtime.errors import MissingExtraError

_ZERO_WIDTH_SPACE = "\u200b"  # ends a word in Khmer, for example, but is also put into long words of other scripts
_INVISIBLE = re.compile(rf"(?!{_ZERO_WIDTH_SPACE})[{IGNORABLE}\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_WORD = re.compile(r"[^\W_]\w*")  # in a text that `_Outline` has translated
# Between "line" and "Cache" in lineCache, between "HTTP" and "Server" in HTTPServer.
_PARTS = re.compile(rf"{_ZERO_WIDTH_SPACE}+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


# A text has at most some thousand different characters. More would be an attempt to fill the memory.
_MAX_CHARACTERS = 2**15


class BM25:
    """The BM25 scores of texts for a query, after the words that they share.

    BM25 as Lucene computes it: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
    with an inverse document frequency that is never negative (Kamphuis et al., "Which BM25 do you mean?", 2020), k1 =
    1.5 and b = 0.75, the defaults of bm25s.

    Args:
        texts: The texts to search.

    Raises:
        MissingExtraError: If bm25s is not installed.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        library = _import_bm25s()
        vocabulary: dict[str, int] = {}
        ids = [[vocabulary.setdefault(word, len(vocabulary)) for word in words(text)] for text in texts]
        self._count = len(ids)
        self._vocabulary = vocabulary
        self._model = library.BM25()
        if vocabulary:
            self._model.index((ids, vocabulary), create_empty_token=False, show_progress=False)

    def scores(self, query: str) -> npt.NDArray[np.float32]:
        """Return the score of each text.

        Args:
            query: The query. A word that it repeats counts as often.

        Returns:
            (texts,) float32, at least 0; 0 for a text that shares no word with the query.
        """
        known = [self._vocabulary[word] for word in words(query) if word in self._vocabulary]
        if not known:
            return np.zeros(self._count, dtype=np.float32)
        scores: npt.NDArray[np.float32] = self._model.get_scores_from_ids(known)
        return scores


def words(text: str) -> list[str]:
    """Return the words of a text for BM25, without differences of case.

    A word is a run of Unicode letters, digits and their combining marks after NFKC normalization, so snake_case gives
    two words. Invisible characters are dropped: control characters, and those with the Unicode property
    Default_Ignorable_Code_Point, such as the soft hyphen and joiners. CamelCase gives its parts and the whole, and so
    does a word with zero-width spaces. Case is folded as Unicode says, so that "Straße" and "STRASSE" are one word;
    beyond that, the Turkish dotted and dotless i are one letter, because "I" may be the capital of either. A plural
    "s" is removed (`singular`). No word is left out: the weight of a frequent one is small by itself. Text without
    spaces, such as Chinese, is one word up to the next punctuation mark, so that keyword search is of little use for
    it.

    Splitting identifiers and removing the plural "s" were chosen on other text than the results page reports:
    docstrings of numpy, scipy, scikit-learn, torch and matplotlib, searched by their own first line (mean reciprocal
    rank 0.473 with plain words, 0.556 with both), and medical questions and answers (0.438 and 0.448);
    docs/results/hybrid.md links what measured it.

    Args:
        text: The text.
    """
    normalized = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    found = []
    for match in _WORD.finditer(normalized.translate(_OUTLINE)):
        word = normalized[match.start() : match.end()].rstrip(_ZERO_WIDTH_SPACE)
        parts = _PARTS.split(word)
        found += [singular(_fold_case(part)) for part in parts]
        if len(parts) > 1:
            found.append(_fold_case(word.replace(_ZERO_WIDTH_SPACE, "")))
    return found


def singular(word: str) -> str:
    """Return a word without the "s" of an English plural.

    This is the "S" stemmer of Harman, "How effective is suffixing?" (1991).

    Args:
        word: A word in lower case. In other languages, an ending "s" is removed too, from texts and queries alike.
    """
    if len(word) <= 3 or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return word if word[-4] in "ae" else f"{word[:-3]}y"
    if word.endswith("es"):
        return word if word[-3] in "aeo" else word[:-1]
    return word if word[-2] in "us" else word[:-1]


class _Outline(dict[int, str]):
    """A table for `str.translate` that shows where words are: only in words, marks and zero-width spaces become "_"."""

    def __missing__(self, code: int) -> str:
        """Return what stands for a character in the outline."""
        character = chr(code)
        is_inner = character == _ZERO_WIDTH_SPACE or unicodedata.category(character) in ("Mn", "Mc")
        shown = "_" if is_inner else " " if character == "_" else character
        if len(self) < _MAX_CHARACTERS:
            self[code] = shown
        return shown


_OUTLINE = _Outline()


def _fold_case(word: str) -> str:
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", word).casefold())
    return folded.replace("i\u0307", "i").replace("\u0131", "i")


def _import_bm25s() -> ModuleType:
    try:
        import bm25s
    except ImportError as error:
        raise MissingExtraError("bm25s", "hybrid", "edgeembed-runtime") from error
    # It sets the level to DEBUG, so that an app that logs to a file would find its messages there.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return cast("ModuleType", bm25s)
