import pytest

from edgeembed.augmentation.inflection import form_names, forms, may_be_form, possible_lemmas
from edgeembed.augmentation.wordnet import PartOfSpeech


@pytest.mark.parametrize(
    ("lemma", "part", "expected"),
    [
        ("car", "n", {"plural": "cars"}),
        ("city", "n", {"plural": "cities"}),
        ("church", "n", {"plural": "churches"}),
        ("child", "n", {"plural": "children"}),
        ("walk", "v", {"third": "walks", "ing": "walking", "past": "walked", "participle": "walked"}),
        ("stop", "v", {"third": "stops", "ing": "stopping", "past": "stopped", "participle": "stopped"}),
        ("hope", "v", {"third": "hopes", "ing": "hoping", "past": "hoped", "participle": "hoped"}),
        ("agree", "v", {"third": "agrees", "ing": "agreeing", "past": "agreed", "participle": "agreed"}),
        ("try", "v", {"third": "tries", "ing": "trying", "past": "tried", "participle": "tried"}),
        ("die", "v", {"third": "dies", "ing": "dying", "past": "died", "participle": "died"}),
        ("give", "v", {"third": "gives", "ing": "giving", "past": "gave", "participle": "given"}),
        ("make", "v", {"third": "makes", "ing": "making", "past": "made", "participle": "made"}),
        ("repair", "v", {"third": "repairs", "ing": "repairing", "past": "repaired", "participle": "repaired"}),
        ("big", "a", {}),
    ],
)
def test_words_are_inflected(lemma: str, part: PartOfSpeech, expected: dict[str, str]) -> None:
    made = forms(lemma, part)
    assert {name: form for name, form in made.items() if name not in {"base", "singular"}} == expected
    assert all(lemma in set(possible_lemmas(form)) for form in made.values())


@pytest.mark.parametrize(
    ("lemma", "part", "absent"),
    [("policeman", "n", "plural"), ("photo", "n", "plural"), ("visit", "v", "past"), ("burn", "v", "past")],
)
def test_an_uncertain_form_is_missing(lemma: str, part: PartOfSpeech, absent: str) -> None:
    assert absent not in forms(lemma, part)


def test_a_form_may_have_several_names() -> None:
    assert form_names("put", "put", "v") == ("base", "past", "participle")


def test_an_uncertain_form_is_possible() -> None:
    assert may_be_form("visiting", "visit", "v")
    assert may_be_form("older", "old", "a")
    assert not may_be_form("walking", "walk", "v")
