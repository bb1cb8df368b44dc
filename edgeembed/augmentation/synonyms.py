"""Words replaced by WordNet synonyms, where that is likely to read as English."""

import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from edgeembed.augmentation.english import (
    DETERMINERS,
    FORMS_OF_BE,
    FUNCTION_WORDS,
    PREPOSITIONS,
    SINGULAR_DETERMINERS,
    SUBJECTS_AND_MODALS,
)
from edgeembed.augmentation.inflection import form_names, forms, may_be_form, possible_lemmas
from edgeembed.augmentation.wordnet import PARTS_OF_SPEECH, PartOfSpeech, WordNet

RULES = 1
"""Raised whenever the rules give other variants of the same sentence, so that no cache keeps the old ones."""

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_PLAIN_WORD = re.compile(r"[a-z]{3,}")
_JOINED = re.compile(r"[\w@/\\#$%&=+~^|<>{}'\u2019-]|\.\w")
_SOUNDS_LIKE_VOWEL = re.compile(r"[aeiou]|hour|honou?r|honest|heir")
_SOUNDS_LIKE_CONSONANT = re.compile(r"eu|one|once|uni(?!n|m)|us[aeu]|ut[ei]|ub|ur[aei]")
# No paper gives these three numbers; they are our choices. In Open English WordNet:
_MOST_SENSES = 14  # 103 lemmas have more, such as "break" (59) and "make" (49), too many to trust the first one
_LEAST_USES = 5  # of a synonym in definitions and examples: keeps out "motorcar" (1) and "commence" (3)
_LEAST_SHARE_OF_USES = 0.02  # of the uses of the word replaced: "car" (450) gives "automobile" (64), not "auto" (5)


class Variant(NamedTuple):
    """A sentence made of another.

    Attributes:
        text: The sentence.
        substituted: How many words differ; None where it was made anew as a whole.
    """

    text: str
    substituted: int | None


class _Reading(NamedTuple):
    """What a word can be: a lemma, its part of speech, and the forms of it that the word is."""

    lemma: str
    part: PartOfSpeech
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Token:
    """A word where it stands, with its neighbours in lower case: two before it, one after it, none across a comma."""

    text: str
    start: int
    end: int
    earlier: str
    previous: str
    next: str
    is_first: bool


class SynonymSubstitution:
    """Substitutes a share of the words of English sentences.

    Nobody has said which part of speech or sense a word has. So a word is replaced only where one part of speech
    remains after looking at its form and the word before it, and only by a lemma with the same foremost sense. The
    synonym takes the form of the word (`cars` gives `automobiles`). Function words, numbers, names, and words that are
    part of a longer lemma (`ice cream`, `give up`) stay.

    Args:
        wordnet: Where synonyms come from.
        share: Share of a sentence's words to substitute, above 0 and at most 1; one word at least, and no more than
            can be. HPD (section 4.3) uses nlpaug, whose share is 0.3.
        variants: Variants to draw for each sentence; equal ones are possible.
        seed: Decides the draws, together with the sentence: neither its place nor its neighbours do.
    """

    name = "synonyms"

    def __init__(self, wordnet: WordNet, *, share: float = 0.3, variants: int = 1, seed: int = 0) -> None:
        self.wordnet = wordnet
        self.share = share
        self.variants = variants
        self.seed = seed
        self._readings: dict[str, tuple[_Reading, ...]] = {}

    @property
    def key(self) -> str:
        """What decides the variants, apart from the sentences."""
        return f"{RULES} {self.wordnet.fingerprint} {self.share} {self.variants} {self.seed}"

    def vary(self, sentences: Sequence[str]) -> list[list[Variant]]:
        """Give the variants of each sentence; one in which nothing could be substituted equals it."""
        return [self._vary(sentence) for sentence in sentences]

    def _vary(self, sentence: str) -> list[Variant]:
        tokens = _tokens(sentence)
        choices = [(token, synonyms) for token in tokens if (synonyms := self._synonyms(token, sentence))]
        count = min(len(choices), max(1, round(self.share * len(tokens))))
        made = []
        for number in range(self.variants):
            draw = random.Random(f"{self.seed} {number} {sentence}")  # noqa: S311  # no secret
            chosen = draw.sample(choices, count)
            made.append(Variant(_replace(sentence, [(token, draw.choice(each)) for token, each in chosen]), count))
        return made

    def _synonyms(self, token: _Token, sentence: str) -> tuple[str, ...]:
        """Give what may stand in a word's place, in its form and case."""
        word = _lower_first(token)
        if not _PLAIN_WORD.fullmatch(word) or word in FUNCTION_WORDS or _is_joined(token, sentence):
            return ()
        reading = self._reading(word, token)
        if reading is None or self._is_part_of_a_longer_lemma(reading.lemma, word, token):
            return ()
        if token.text != word and not _is_no_name(reading):
            return ()
        fitting = self._inflected(reading)
        if token.previous in {"a", "an"}:
            fitting = tuple(each for each in fitting if _article(each) == token.previous)
        return tuple(each.capitalize() for each in fitting) if token.text != word else fitting

    def _reading(self, word: str, token: _Token) -> _Reading | None:
        """Give the one reading that form and context leave, if its senses are few enough to trust the first."""
        readings = [reading for reading in self._all_readings(word) if _is_possible(reading, token)]
        parts = {reading.part for reading in readings}
        is_undecided = token.previous == "to" or (word.endswith("ing") and token.previous not in FORMS_OF_BE)
        # "To use" or "to school", "start building" or "ugly building": nothing near tells the verb from the noun.
        if not readings or (parts >= {"n", "v"} and is_undecided):
            return None
        counts = [self.wordnet.count(reading.lemma, reading.part) for reading in readings]
        most = max(counts)
        chosen = readings[counts.index(most)]
        is_clear = chosen.lemma not in FUNCTION_WORDS and most <= _MOST_SENSES and 2 * most > sum(counts)
        return chosen if is_clear else None

    def _all_readings(self, word: str) -> tuple[_Reading, ...]:
        if word not in self._readings:
            self._readings[word] = tuple(
                _Reading(lemma, part, names)
                for lemma in possible_lemmas(word)
                for part in PARTS_OF_SPEECH
                if self.wordnet.count(lemma, part)
                and ((names := form_names(word, lemma, part)) or may_be_form(word, lemma, part))
            )
        return self._readings[word]

    def _inflected(self, reading: _Reading) -> tuple[str, ...]:
        inflected = []
        for synonym in self.wordnet.synonyms(reading.lemma, reading.part):
            if self._is_plain(synonym, reading):
                fitting = {forms(synonym, reading.part).get(name) for name in reading.names}
                inflected += [form for form in fitting if form and len(fitting) == 1]
        return tuple(inflected)

    def _is_plain(self, synonym: str, reading: _Reading) -> bool:
        """Tell whether a synonym is one word, common enough, and mostly of the part of speech that is asked for."""
        uses = self.wordnet.uses.get
        senses = self.wordnet.count(synonym, reading.part)
        others = sum(self.wordnet.count(each.lemma, each.part) for each in self._all_readings(synonym)) - senses
        return (
            bool(_PLAIN_WORD.fullmatch(synonym))
            and synonym not in FUNCTION_WORDS
            and uses(synonym, 0) >= max(_LEAST_USES, _LEAST_SHARE_OF_USES * uses(reading.lemma, 0))
            and senses <= _MOST_SENSES
            # What is as much a noun reads as one: "essay" is no good verb, but "automobile" is a good noun.
            and (senses > others or (senses == others and reading.part == "n"))
        )

    def _is_part_of_a_longer_lemma(self, lemma: str, word: str, token: _Token) -> bool:
        return any(
            f"{token.previous} {each}" in self.wordnet or f"{each} {token.next}" in self.wordnet
            for each in (lemma, word)
        )


def _is_possible(reading: _Reading, token: _Token) -> bool:
    """Tell whether a word can be read so after the words before it."""
    if token.previous in DETERMINERS:
        return reading.part in {"n", "a"}
    if token.previous in PREPOSITIONS:
        return reading.part != "v" or reading.names == ("ing",)
    if token.previous in SUBJECTS_AND_MODALS:
        return reading.part != "n"
    return token.earlier not in SINGULAR_DETERMINERS or reading.part != "v" or "base" not in reading.names


def _tokens(sentence: str) -> list[_Token]:
    tokens: list[_Token] = []
    matches = [*_TOKEN.finditer(sentence)]
    for match, after in itertools.zip_longest(matches, matches[1:]):
        before = tokens[-1] if tokens and sentence[tokens[-1].end : match.start()] == " " else None
        is_followed = after and sentence[match.end() : after.start()] == " "
        tokens.append(
            _Token(
                text=match.group(),
                start=match.start(),
                end=match.end(),
                earlier=before.previous if before else "",
                previous=before.text.lower() if before else "",
                next=after.group().lower() if is_followed else "",
                is_first=not tokens,
            )
        )
    return tokens


def _lower_first(token: _Token) -> str:
    return token.text[0].lower() + token.text[1:] if token.is_first else token.text


def _is_joined(token: _Token, sentence: str) -> bool:
    """Tell whether a word is part of an address, a formula or the like."""
    before = sentence[token.start - 1 : token.start]
    return bool(_JOINED.match(before) or before == "." or _JOINED.match(sentence, token.end))


def _is_no_name(reading: _Reading) -> bool:
    """Tell whether a capitalised word can only be an ordinary one: "Tom" and "Mark" are base forms."""
    return reading.part == "r" or reading.names not in {("base",), ("singular",)}


def _article(word: str) -> str:
    return "an" if _SOUNDS_LIKE_VOWEL.match(word) and not _SOUNDS_LIKE_CONSONANT.match(word) else "a"


def _replace(sentence: str, substitutions: Sequence[tuple[_Token, str]]) -> str:
    parts, start = [], 0
    for token, synonym in sorted(substitutions, key=lambda each: each[0].start):
        parts += [sentence[start : token.start], synonym]
        start = token.end
    return "".join([*parts, sentence[start:]])
