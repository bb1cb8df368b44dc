"""Synonyms from the real Open English WordNet."""

from pathlib import Path

import pytest

from edgeembed.augmentation.synonyms import SynonymSubstitution
from edgeembed.augmentation.wordnet import WordNet, read_wordnet

WORDNET = Path(__file__).parents[3].parent / "shared" / "data" / "train" / "wordnet"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WORDNET.is_dir(), reason=f"needs Open English WordNet in {WORDNET}"),
]


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return read_wordnet(WORDNET)


@pytest.mark.parametrize(
    ("sentence", "variants"),
    [
        ("Two cars waited outside.", {"Two automobiles waited outside.", "Two autos waited outside."}),
        ("The doctor was delayed, however.", {"The physician was delayed, nevertheless."}),
        ("Several children finished quickly.", {"Several kids finished rapidly.", "Several kids completed rapidly."}),
        ("Tom gave Rose the best of them.", set()),
        ("I took the saw and left.", set()),
        ("We had ice cream.", set()),
    ],
)
def test_variants_are_correct_english(wordnet: WordNet, sentence: str, variants: set[str]) -> None:
    (made,) = SynonymSubstitution(wordnet, share=1.0, variants=3).vary([sentence])
    assert {variant.text for variant in made} <= (variants or {sentence})
