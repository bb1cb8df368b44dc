"""Measure which share of a text's words a vocabulary knows."""

import collections
import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

UNKNOWN_SHARE = 0.9
"""The share of unknown tokens from which on a text counts as almost wholly unknown.

With the encoders in the wheel, 99 % of 20,000 Russian sentences reach it, and none of 180,000 sentences in nine
languages with the Latin alphabet (docs/results/unknown-share.json, by experiments/runtime/unknown_share.py). A lower
share would also include texts with one English name in Russian words.
"""

# A vocabulary knows a script if it has this many tokens of two or more letters of it, or this many ideographs. BERT's
# English vocabulary has at most 8 such tokens of any script but Latin, and 488 of the 3,000 ideographs of a newspaper.
_MIN_WORDS = 100
_MIN_IDEOGRAPHS = 1000
_IDEOGRAPHS = "CJK"
_SPECIAL = re.compile(r"\[.+\]|<.+>", re.DOTALL)
_MARKS = re.compile("^(?:##|\u2581+|\u0120+)|</w>$")  # WordPiece; SentencePiece and byte-level BPE; BPE

TokenKind = Literal["known", "unknown", "other"]


class WordTokens(NamedTuple):
    """The tokens of a text that stand for words or parts of words.

    Attributes:
        total: How many there are. Punctuation and special tokens do not count.
        unknown: How many of them the vocabulary does not know.
    """

    total: int
    unknown: int

    def without(self, prompt: "WordTokens") -> "WordTokens":
        """Return the tokens of a text that starts with a prompt without those of the prompt."""
        return WordTokens(max(0, self.total - prompt.total), max(0, self.unknown - prompt.unknown))

    @property
    def known_share(self) -> float:
        """The share of known tokens, from 0 to 1; 1 if there are no tokens."""
        return 1 - self.unknown / self.total if self.total else 1.0

    @property
    def are_unknown(self) -> bool:
        """Whether the vocabulary knows almost none of the tokens."""
        return self.total > 0 and self.unknown >= UNKNOWN_SHARE * self.total


class VocabularyCoverage:
    """Count the tokens of a text that a vocabulary does not know. Threads may share an instance.

    A token is unknown if it is the tokenizer's unknown token, or in a script of which the vocabulary has letters but
    hardly any words: an English vocabulary splits every Russian word into its letters, so that the embeddings of all
    Russian texts are similar. A tokenizer that splits unknown words into bytes has no unknown tokens.

    Args:
        vocabulary: The id of each token.
        unknown_id: The id of the unknown token, if there is one.
    """

    def __init__(self, vocabulary: Mapping[str, int], unknown_id: int | None) -> None:
        self._tokens = {token_id: token for token, token_id in vocabulary.items()}
        self._kinds: dict[int, TokenKind] = {} if unknown_id is None else {unknown_id: "unknown"}

    def count(self, token_ids: Sequence[int]) -> WordTokens:
        """Return the number of word tokens among tokens, and how many of them are unknown."""
        kinds = [self._kinds.get(token_id) or self._classify(token_id) for token_id in token_ids]
        unknown = kinds.count("unknown")
        return WordTokens(kinds.count("known") + unknown, unknown)

    def _classify(self, token_id: int) -> TokenKind:
        """Return the kind of a token, and remember it."""
        token = self._tokens.get(token_id, "")  # special tokens may have ids outside the vocabulary
        word = _MARKS.sub("", token)
        kind: TokenKind = "known"
        if _SPECIAL.fullmatch(token) or not any(map(str.isalnum, word)):
            kind = "other"
        elif word.isalpha() and not word.isascii() and _script(word[0]) not in self._known_scripts:
            kind = "unknown"
        self._kinds[token_id] = kind
        return kind

    @functools.cached_property
    def _known_scripts(self) -> set[str]:
        """The scripts in which the vocabulary has words."""
        words: collections.Counter[str] = collections.Counter()
        ideographs = 0
        for token in self._tokens.values():
            if token.isascii():
                continue
            word = _MARKS.sub("", token)
            if len(word) > 1:
                words[_script(word[0])] += 1
            elif _script(word) == _IDEOGRAPHS:
                ideographs += 1
        known = {script for script, count in words.items() if count >= _MIN_WORDS}
        return known | {"LATIN"} | ({_IDEOGRAPHS} if ideographs >= _MIN_IDEOGRAPHS else set())


def _script(character: str) -> str:
    """Return the first word of a character's Unicode name, which for a letter is its script; "" for no character."""
    return unicodedata.name(character, "").partition(" ")[0] if character else ""
