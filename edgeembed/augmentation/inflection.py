"""Inflection of English words: regular forms by rule, irregular verbs and nouns by list, no form if it is uncertain."""

import functools
import re
from collections.abc import Iterator

from edgeembed.augmentation.wordnet import PartOfSpeech

_VOWELS = "aeiou"

# Base, past, participle; a single form is both past and participle.
_IRREGULAR_VERBS = """
arise arose arisen, awake awoke awoken, be was been, bear bore borne, beat beat beaten, become became become,
begin began begun, bend bent, bet bet, bind bound, bite bit bitten, bleed bled, blow blew blown, break broke broken,
breed bred, bring brought, broadcast broadcast, build built, burst burst, buy bought, cast cast, catch caught,
choose chose chosen, cling clung, come came come, cost cost, creep crept, cut cut, deal dealt, dig dug, do did done,
draw drew drawn, drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt,
fight fought, find found, flee fled, fling flung, fly flew flown, forbid forbade forbidden, foresee foresaw foreseen,
forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got got, give gave given, go went gone,
grind ground, grow grew grown, hang hung, have had, hear heard, hide hid hidden, hit hit, hold held, hurt hurt,
keep kept, know knew known, lay laid, lead led, leave left, lend lent, let let, lie lay lain, lose lost, make made,
mean meant, meet met, mistake mistook mistaken, overcome overcame overcome, overtake overtook overtaken, pay paid,
put put, quit quit, read read, rid rid, ride rode ridden, ring rang rung, rise rose risen, run ran run, say said,
see saw seen, seek sought, sell sold, send sent, set set, shake shook shaken, shed shed, shine shone, shoot shot,
show showed shown, shrink shrank shrunk, shut shut, sing sang sung, sink sank sunk, sit sat, sleep slept, slide slid,
sling slung, speak spoke spoken, spend spent, spin spun, split split, spread spread, spring sprang sprung,
stand stood, steal stole stolen, stick stuck, sting stung, stink stank stunk, strike struck struck,
strive strove striven, swear swore sworn, sweep swept, swell swelled swollen, swim swam swum, swing swung,
take took taken, teach taught, tear tore torn, tell told, think thought, throw threw thrown, thrust thrust,
understand understood, undertake undertook undertaken, undo undid undone, upset upset, wake woke woken,
wear wore worn, weave wove woven, weep wept, win won, wind wound, withdraw withdrew withdrawn, write wrote written
"""
_PASTS = {base: (rest[0], rest[-1]) for base, *rest in (entry.split() for entry in _IRREGULAR_VERBS.split(","))}

# Verbs with both a regular and an irregular past.
_UNCERTAIN_VERBS = frozenset(
    """
    abide bid bust burn dream dwell fit forecast hew kneel knit lean leap learn light mow plead prove saw sew shave
    shear slay slit smell sow spell spill spit spoil stride thrive tread wed wet
    """.split()  # noqa: SIM905
)

_IRREGULAR_NOUNS = {
    "child": "children",
    "foot": "feet",
    "goose": "geese",
    "half": "halves",
    "knife": "knives",
    "leaf": "leaves",
    "life": "lives",
    "loaf": "loaves",
    "man": "men",
    "mouse": "mice",
    "ox": "oxen",
    "person": "people",
    "shelf": "shelves",
    "thief": "thieves",
    "tooth": "teeth",
    "wife": "wives",
    "wolf": "wolves",
    "woman": "women",
}
# Nouns whose plural may be Latin, Greek, unchanged, or the only form.
_UNCERTAIN_NOUN = re.compile(
    r"(?:man|[^s]s|[^aeiou]on(?<!tion)(?<!sion)|um|f|fe|a|[^aeiou]o|eau|ix|ex|fish|sheep|deer|craft)$"
)
_MIN_LETTERS = 2

SUFFIXES = {"s": "plural", "ed": "past", "ing": "ing", "er": "comparative", "est": "superlative"}
"""Suffixes, and the form that a word with the suffix probably is."""


@functools.lru_cache(maxsize=1 << 17)
def forms(lemma: str, part: PartOfSpeech) -> dict[str, str]:
    """Return the inflected forms of a lemma by name.

    Args:
        lemma: One word in lower case.
        part: The part of speech.

    Returns:
        For a noun `singular` and `plural`; for a verb `base`, `third`, `ing`, `past` and `participle`; for an
        adjective or adverb `base`. Uncertain forms are missing.
    """
    if part == "n":
        return {"singular": lemma} | _optional("plural", _plural(lemma))
    if part == "v":
        past, participle = _past(lemma)
        return (
            {"base": lemma}
            | _optional("third", {"be": "is", "have": "has"}.get(lemma, _with_s(lemma)))
            | _optional("ing", _with_suffix(lemma, "ing"))
            | _optional("past", past)
            | _optional("participle", participle)
        )
    return {"base": lemma}


def possible_lemmas(word: str) -> Iterator[str]:
    """Yield the candidate lemmas of a word, the word itself first.

    Some candidates may not be words, but no lemma is missing that has the word among its `forms`.
    """
    candidates = [word, *_IRREGULAR_LEMMAS.get(word, ())]
    for suffix in SUFFIXES:
        if word.endswith(suffix):
            stem = word.removesuffix(suffix)
            candidates += [stem, f"{stem}e", stem[:-1], f"{stem[:-1]}y", f"{stem[:-1]}ie", f"{stem[:-2]}y"]
    yield from dict.fromkeys(each for each in candidates if len(each) >= _MIN_LETTERS)


def form_names(word: str, lemma: str, part: PartOfSpeech) -> tuple[str, ...]:
    """Return the names of the `forms` of a lemma that equal a word."""
    return tuple(name for name, form in forms(lemma, part).items() if form == word)


def may_be_form(word: str, lemma: str, part: PartOfSpeech) -> bool:
    """Return whether a word may be an uncertain form of a lemma: "happening" of "happen", "older" of "old"."""
    uncertain = {"n": {"plural"}, "v": {"past", "ing"}, "a": {"comparative", "superlative"}, "r": set()}[part]
    return word != lemma and any(
        word.endswith(suffix) and name in uncertain and name not in forms(lemma, part)
        for suffix, name in SUFFIXES.items()
    )


def _optional(name: str, form: str | None) -> dict[str, str]:
    return {name: form} if form else {}


def _plural(lemma: str) -> str | None:
    if lemma in _IRREGULAR_NOUNS:
        return _IRREGULAR_NOUNS[lemma]
    return None if _UNCERTAIN_NOUN.search(lemma) else _with_s(lemma)


def _past(lemma: str) -> tuple[str | None, str | None]:
    if lemma in _UNCERTAIN_VERBS:
        return None, None
    regular = _with_suffix(lemma, "ed")
    return _PASTS.get(lemma, (regular, regular))


def _with_s(lemma: str) -> str:
    if re.search(rf"[^{_VOWELS}]y$", lemma):
        return f"{lemma[:-1]}ies"
    return f"{lemma}es" if re.search(rf"(?:s|x|z|ch|sh|[^{_VOWELS}]o)$", lemma) else f"{lemma}s"


def _with_suffix(lemma: str, suffix: str) -> str | None:
    if suffix == "ed" and re.search(rf"[^{_VOWELS}]y$", lemma):
        return f"{lemma[:-1]}ied"
    if suffix == "ing" and lemma.endswith("ie"):
        return f"{lemma[:-2]}ying"
    if lemma.endswith("e"):
        return lemma + suffix if suffix == "ing" and re.search(r"(?:ee|oe|ye)$", lemma) else lemma[:-1] + suffix
    if re.search(rf"[^{_VOWELS}][{_VOWELS}][^{_VOWELS}wxy]$", f"-{lemma}"):
        is_short = len(re.findall(rf"[{_VOWELS}y]+", lemma)) == 1
        # Whether a longer word doubles its last letter depends on its stress: "admitted" but "visited".
        return lemma + lemma[-1] + suffix if is_short else None
    return lemma + suffix


def _irregular_lemmas() -> dict[str, tuple[str, ...]]:
    lemmas: dict[str, tuple[str, ...]] = {"is": ("be",), "has": ("have",)}
    pairs = [(form, base) for base, past in _PASTS.items() for form in past]
    for form, base in [*pairs, *((plural, noun) for noun, plural in _IRREGULAR_NOUNS.items())]:
        lemmas[form] = (*lemmas.get(form, ()), base)
    return lemmas


_IRREGULAR_LEMMAS = _irregular_lemmas()
