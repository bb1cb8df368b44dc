from pathlib import Path

import pytest

from edgeembed.augmentation.synonyms import SynonymSubstitution
from edgeembed.augmentation.wordnet import WordNet, read_wordnet


@pytest.fixture(scope="module")
def wordnet(wordnet_folder: Path) -> WordNet:
    return read_wordnet(wordnet_folder)


def varied(wordnet: WordNet, sentence: str) -> str:
    """Return the only variant with all possible substitutions."""
    ((variant,),) = SynonymSubstitution(wordnet, share=1.0).vary([sentence])
    return variant.text


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The car stopped.", "The automobile stopped."),
        ("Two cars, one child!", "Two automobiles, one kid!"),
        ("The children bought it.", "The kids purchased it."),
        ("They create noise.", "They make noise."),
        ("They created noise.", "They made noise."),
        ("He is creating it quickly", "He is making it rapidly"),
        ("Cars are loud.", "Automobiles are loud."),
        ("Quickly, run!", "Rapidly, run!"),
    ],
)
def test_synonyms_have_the_form_and_case_of_the_word(wordnet: WordNet, sentence: str, expected: str) -> None:
    assert varied(wordnet, sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        pytest.param("You can go.", id="function word"),
        pytest.param("I met Rose in Rome.", id="name"),
        pytest.param("Rose came.", id="name at the start"),
        pytest.param("A week passed.", id="synonym that nobody uses"),
        pytest.param("My sports car is red.", id="part of a longer lemma"),
        pytest.param("It is a car.", id="article that would be wrong"),
        pytest.param("See car.example.org or /car or car's or car-like or car2.", id="part of something else"),
        pytest.param("help wanted", id="verb or noun"),
        pytest.param("", id="nothing"),
    ],
)
def test_unsuitable_words_are_kept(wordnet: WordNet, sentence: str) -> None:
    assert varied(wordnet, sentence) == sentence


def test_the_word_before_decides_between_noun_and_verb(wordnet: WordNet) -> None:
    assert varied(wordnet, "Your help came.") == "Your assistance came."
    assert varied(wordnet, "They help us.") == "They assist us."


def test_at_least_one_word_and_up_to_a_share_is_substituted(wordnet: WordNet) -> None:
    sentence = "cars, cars, cars, cars, cars, cars, cars, cars, cars, cars"
    ((variant,),) = SynonymSubstitution(wordnet, share=0.3).vary([sentence])
    assert variant.substituted == variant.text.count("automobiles") == 3
    ((least,),) = SynonymSubstitution(wordnet, share=0.01).vary([sentence])
    assert least.substituted == 1


def test_variants_depend_only_on_the_sentence_and_the_seed(wordnet: WordNet) -> None:
    sentences = [f"cars, children, cars, children, cars and {word}" for word in ("one", "two", "three", "four", "five")]

    def made(order: list[str], seed: int) -> dict[str, object]:
        return dict(zip(order, SynonymSubstitution(wordnet, variants=2, seed=seed).vary(order), strict=True))

    assert made(sentences, 0) == made(sentences[::-1], 0)
    assert made(sentences, 0)[sentences[2]] == made(sentences[2:3], 0)[sentences[2]]
    assert made(sentences, 0) != made(sentences, 1)


def test_the_key_depends_on_everything_that_determines_the_variants(wordnet: WordNet) -> None:
    keys = {
        SynonymSubstitution(wordnet).key,
        SynonymSubstitution(wordnet, share=0.4).key,
        SynonymSubstitution(wordnet, variants=2).key,
        SynonymSubstitution(wordnet, seed=1).key,
    }
    assert len(keys) == 4
