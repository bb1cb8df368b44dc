"""Substitution of words by WordNet synonyms where the result is likely to be correct English."""

import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from edgeembed.augmentation.inflection import form_names, forms, may_be_form, possible_lemmas
from edgeembed.augmentation.wordnet import PARTS_OF_SPEECH, PartOfSpeech, WordNet

RULES_VERSION = 1
"""Increased whenever the rules change the variants of a sentence, so that cached variants are not reused."""

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_PLAIN_WORD = re.compile(r"[a-z]{3,}")
_JOINED = re.compile(r"[\w@/\\#$%&=+~^|<>{}'\u2019-]|\.\w")
_SOUNDS_LIKE_VOWEL = re.compile(r"[aeiou]|hour|honou?r|honest|heir")
_SOUNDS_LIKE_CONSONANT = re.compile(r"eu|one|once|uni(?!n|m)|us[aeu]|ut[ei]|ub|ur[aei]")
# No paper specifies these three thresholds; they are our choice. The examples count in Open English WordNet.
_MAX_SENSES = 14
"""103 lemmas have more senses, such as "break" (59) and "make" (49): too many to assume the first one."""
_MIN_USES = 5
"""Minimum frequency of a synonym in definitions and examples. It excludes "motorcar" (1) and "commence" (3)."""
_MIN_SHARE_OF_USES = 0.02
"""Minimum frequency relative to the replaced word: "car" (450) becomes "automobile" (64) but not "auto" (5)."""

DETERMINERS = frozenset(
    "a an the this these those my your his its our their whose some any no every each another several".split()  # noqa: SIM905
)
"""Words followed by a noun or an adjective, not by a verb or an adverb."""

FORMS_OF_BE = frozenset(
    "am is are was were be been i'm you're he's she's it's we're they're that's who's".split()  # noqa: SIM905
)
"""Words after which an -ing form is a verb: "is building"."""

SINGULAR_DETERMINERS = frozenset({"a", "an", "this", "every", "each", "another"})
"""Words that are not followed, one word later, by the base form of a verb: in "a nice present" the last is a noun."""

PREPOSITIONS = frozenset("of in on at with for from by into during without between about against through".split())  # noqa: SIM905
"""Words followed by a noun, an adjective or an -ing form, not by another form of a verb."""

SUBJECTS_AND_MODALS = frozenset(
    """
    i you he she we they who will would can could may might must shall should do does did don't doesn't didn't can't
    cannot couldn't won't wouldn't shouldn't mustn't i'll you'll he'll she'll we'll they'll i'd you'd he'd she'd we'd
    they'd let's please
    """.split()  # noqa: SIM905
)
"""Words followed by a verb, an adverb or (in a question) an adjective, not by a noun."""

FUNCTION_WORDS = (
    DETERMINERS
    | PREPOSITIONS
    | SUBJECTS_AND_MODALS
    | frozenset(
        """
        that her either neither many few both all such
        am is are was were be been being have has had having doing done it me him us them mine yours hers ours theirs
        myself yourself himself herself itself ourselves yourselves themselves what which whom when where why how
        and or but nor so yet if then else than as because since until while although though unless whether lest
        above across after along amid among around before behind below beneath beside besides beyond despite down except
        inside like near off onto opposite out outside over past per round throughout till to toward towards under
        underneath unlike up upon via within
        not never ever also too very quite rather just only even still already again almost enough else much more most
        less least little lot lots often always sometimes here there now today tomorrow yesterday once twice
        one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
        eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion
        first second third last next other others own same well yes ok okay oh hey hello hi
        say tell ask show let way away soon hard instead due according ought need dare used mr mrs ms dr
        someone somebody something anyone anybody anything everyone everybody everything nobody nothing none
        somewhere anywhere everywhere nowhere
        """.split()  # noqa: SIM905
    )
)
"""Words that are never substituted: function words, and words whose most common use is not in WordNet."""


class Variant(NamedTuple):
    """A variant of a sentence.

    Attributes:
        text: The variant.
        substituted: The number of substituted words; None for a translation.
    """

    text: str
    substituted: int | None


class _Reading(NamedTuple):
    """A possible analysis of a word: a lemma, its part of speech, and the names of the forms that equal the word."""

    lemma: str
    part: PartOfSpeech
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Token:
    """A word at a position, with its neighbors in lower case: two before, one after, none across punctuation."""

    text: str
    start: int
    end: int
    earlier: str
    previous: str
    next: str
    is_first: bool


class SynonymSubstitution:
    """Substitute a share of the words of English sentences by synonyms.

    The part of speech and sense of a word are unknown. So a word is substituted only if its form and the words before
    it leave one part of speech, and only by a lemma with the same most frequent sense. The synonym is inflected like
    the word (`cars` becomes `automobiles`). Function words, numbers, names, and words that are part of a longer lemma
    (`ice cream`, `give up`) are kept.

    Args:
        wordnet: The source of synonyms.
        share: Share of a sentence's words to substitute, more than 0 and at most 1. At least one word is substituted
            if any can be. HPD (section 4.3) uses nlpaug, whose share is 0.3.
        variants: Variants of each sentence; they may be equal.
        seed: The seed. Together with the sentence it determines the variants, whatever the other sentences are.
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
        """The settings that determine the variants of a sentence, as text."""
        return f"{RULES_VERSION} {self.wordnet.fingerprint} {self.share} {self.variants} {self.seed}"

    def vary(self, sentences: Sequence[str]) -> list[list[Variant]]:
        """Return the variants of each sentence. A variant equals its sentence if no word can be substituted."""
        return [self._vary(sentence) for sentence in sentences]

    def _vary(self, sentence: str) -> list[Variant]:
        tokens = _tokens(sentence)
        choices = [(token, synonyms) for token in tokens if (synonyms := self._synonyms(token, sentence))]
        count = min(len(choices), max(1, round(self.share * len(tokens))))
        variants = []
        for number in range(self.variants):
            rng = random.Random(f"{self.seed} {number} {sentence}")  # noqa: S311  # not used for secrets
            chosen = rng.sample(choices, count)
            text = _replace(sentence, [(token, rng.choice(synonyms)) for token, synonyms in chosen])
            variants.append(Variant(text, count))
        return variants

    def _synonyms(self, token: _Token, sentence: str) -> tuple[str, ...]:
        """Return the synonyms of a word, in its form and case."""
        word = _lower_first(token)
        if not _PLAIN_WORD.fullmatch(word) or word in FUNCTION_WORDS or _is_joined(token, sentence):
            return ()
        reading = self._reading(word, token)
        if reading is None or self._is_part_of_a_longer_lemma(reading.lemma, word, token):
            return ()
        if token.text != word and _may_be_name(reading):
            return ()
        synonyms = self._inflected(reading)
        if token.previous in {"a", "an"}:
            synonyms = tuple(each for each in synonyms if _article(each) == token.previous)
        return tuple(each.capitalize() for each in synonyms) if token.text != word else synonyms

    def _reading(self, word: str, token: _Token) -> _Reading | None:
        """Return the only reading that form and context leave; None if it is ambiguous or has too many senses."""
        readings = [reading for reading in self._all_readings(word) if _is_possible(reading, token)]
        parts = {reading.part for reading in readings}
        is_ambiguous = token.previous == "to" or (word.endswith("ing") and token.previous not in FORMS_OF_BE)
        # "To use" or "to school", "start building" or "ugly building" may be verbs or nouns.
        if not readings or (parts >= {"n", "v"} and is_ambiguous):
            return None
        senses = [self.wordnet.count(reading.lemma, reading.part) for reading in readings]
        highest = max(senses)
        chosen = readings[senses.index(highest)]
        is_clear = chosen.lemma not in FUNCTION_WORDS and highest <= _MAX_SENSES and 2 * highest > sum(senses)
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
            if self._is_suitable(synonym, reading):
                fitting = {forms(synonym, reading.part).get(name) for name in reading.names}
                inflected += [form for form in fitting if form and len(fitting) == 1]
        return tuple(inflected)

    def _is_suitable(self, synonym: str, reading: _Reading) -> bool:
        """Return whether a synonym is one common word that is mostly used as the part of speech of the reading."""
        uses = self.wordnet.uses.get
        senses = self.wordnet.count(synonym, reading.part)
        others = sum(self.wordnet.count(each.lemma, each.part) for each in self._all_readings(synonym)) - senses
        return (
            bool(_PLAIN_WORD.fullmatch(synonym))
            and synonym not in FUNCTION_WORDS
            and uses(synonym, 0) >= max(_MIN_USES, _MIN_SHARE_OF_USES * uses(reading.lemma, 0))
            and senses <= _MAX_SENSES
            # A word with as many noun senses reads as a noun: "essay" is a poor verb, but "automobile" is a good noun.
            and (senses > others or (senses == others and reading.part == "n"))
        )

    def _is_part_of_a_longer_lemma(self, lemma: str, word: str, token: _Token) -> bool:
        return any(
            f"{token.previous} {each}" in self.wordnet or f"{each} {token.next}" in self.wordnet
            for each in (lemma, word)
        )


def _is_possible(reading: _Reading, token: _Token) -> bool:
    """Return whether the words before a word allow a reading."""
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
    """Return whether a word is part of an address, a formula or the like."""
    before = sentence[token.start - 1 : token.start]
    return bool(_JOINED.match(before) or before == "." or _JOINED.match(sentence, token.end))


def _may_be_name(reading: _Reading) -> bool:
    """Return whether a capitalized word may be a name: names such as "Tom" and "Mark" are base forms."""
    return reading.part != "r" and reading.names in {("base",), ("singular",)}


def _article(word: str) -> str:
    return "an" if _SOUNDS_LIKE_VOWEL.match(word) and not _SOUNDS_LIKE_CONSONANT.match(word) else "a"


def _replace(sentence: str, substitutions: Sequence[tuple[_Token, str]]) -> str:
    parts, start = [], 0
    for token, synonym in sorted(substitutions, key=lambda each: each[0].start):
        parts += [sentence[start : token.start], synonym]
        start = token.end
    return "".join([*parts, sentence[start:]])
