"""Keyword search: BM25 scores of texts, computed by the package bm25s."""

import logging
import re
import unicodedata
from collections.abc import Iterable
from types import ModuleType
from typing import cast

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import MissingExtraError

_WORD = re.compile(r"[^\W_]+")
# Between "line" and "Cache" in lineCache, between "HTTP" and "Server" in HTTPServer.
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


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
    """Return the words of a text for BM25, in lower case.

    A word is a run of Unicode letters and digits after NFKC normalization, so snake_case gives two words. CamelCase
    gives its parts and the whole. A plural "s" is removed (`singular`). No word is left out: the weight of a frequent
    one is small by itself. Text without spaces, such as Chinese, is one word up to the next punctuation mark, so that
    keyword search is of little use for it.

    Splitting identifiers and removing the plural "s" were chosen on other text than the results page reports:
    docstrings of numpy, scipy, scikit-learn, torch and matplotlib, searched by their own first line (mean reciprocal
    rank 0.473 with plain words, 0.556 with both), and medical questions and answers (0.438 and 0.448), as
    experiments/bm25_words.py measures it.

    Args:
        text: The text.
    """
    found = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        parts = _CAMEL_CASE.split(word)
        found += [singular(part.lower()) for part in parts]
        if len(parts) > 1:
            found.append(word.lower())
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


def _import_bm25s() -> ModuleType:
    try:
        import bm25s
    except ImportError as error:
        raise MissingExtraError("bm25s", "hybrid", "edgeembed-runtime") from error
    # It sets the level to DEBUG, so that an app that logs to a file would find its messages there.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return cast("ModuleType", bm25s)
