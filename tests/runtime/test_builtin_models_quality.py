"""Basic expectations of the encoders in the wheel, beyond their scores."""

from __future__ import annotations

import random

import numpy as np
import pytest
from edgeembed_runtime import Encoder
from edgeembed_runtime.builtin_models import builtin_names

# A sentence, the same in other words, and something else in nearly the same words: a negation, or another number.
NEGATIONS = [
    ("The shop is open on Sundays.", "On Sundays the store is open.", "The shop is not open on Sundays."),
    ("I like this film very much.", "I really enjoy this movie.", "I do not like this film at all."),
    ("The train arrived on time.", "The train was punctual.", "The train did not arrive on time."),
    ("She can swim.", "She is able to swim.", "She cannot swim."),
    ("There is milk in the fridge.", "The fridge has milk in it.", "There is no milk in the fridge."),
    ("He passed the exam.", "He was successful in the exam.", "He failed the exam."),
    ("The road is safe.", "It is a safe road.", "The road is not safe."),
    ("We have enough money.", "Our money is sufficient.", "We do not have enough money."),
]
NUMBERS = [
    ("The meeting starts at 9 o'clock.", "The meeting begins at nine.", "The meeting starts at 4 o'clock."),
    ("The flat has three rooms.", "It is a three-room flat.", "The flat has seven rooms."),
    ("The ticket costs 20 euros.", "The price of the ticket is 20 euros.", "The ticket costs 350 euros."),
    ("Two dogs are running.", "A couple of dogs run.", "Ten dogs are running."),
    ("He was born in 1950.", "His year of birth is 1950.", "He was born in 2010."),
    ("The bridge is 80 metres long.", "The bridge has a length of 80 metres.", "The bridge is 6000 metres long."),
]
ORDERS = [
    ("The dog bit the man.", "The man bit the dog."),
    ("Anna lent money to Paul.", "Paul lent money to Anna."),
    ("The cat chases the mouse.", "The mouse chases the cat."),
]
TRIVIAL = [
    ("How do I read a file?", "how do i read a file"),
    ("The weather is nice today.", "  The weather is nice today .  "),
    ("Berlin is the capital of Germany.", "Berlin is the capital of Germany"),
    ("It's cold outside.", "It\u2019s cold outside!"),
]
FIRST_LETTERS = {
    "latin": 0x61,
    "cyrillic": 0x430,
    "greek": 0x3B1,
    "hebrew": 0x5D0,
    "arabic": 0x627,
    "devanagari": 0x905,
    "thai": 0xE01,
    "hangul": 0xAC00,
    "kana": 0x3041,
    "han": 0x4E00,
}


@pytest.fixture(scope="module", params=["mini", "nano", "micro"])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return _load(request.param)


@pytest.fixture(scope="module", params=["mini", "nano"])
def transformer(request: pytest.FixtureRequest) -> Encoder:
    return _load(request.param)


def _load(name: str) -> Encoder:
    if name not in builtin_names():
        pytest.skip(f"this build carries no encoder {name}")
    return Encoder(name)


def cosines(encoder: Encoder, pairs: list[tuple[str, str]]) -> list[float]:
    first, second = (encoder.encode([pair[side] for pair in pairs]) for side in (0, 1))
    return [float(value) for value in (first * second).sum(axis=1)]


@pytest.mark.parametrize("kind", [NEGATIONS, NUMBERS], ids=["negation", "number"])
def test_change_of_meaning_lowers_the_cosine_of_transformers_more_than_a_paraphrase(
    transformer: Encoder, kind: list[tuple[str, str, str]]
) -> None:
    same = cosines(transformer, [(text, paraphrase) for text, paraphrase, _ in kind])
    changed = cosines(transformer, [(text, other) for text, _, other in kind])
    assert np.mean(same) > np.mean(changed)


def test_duplicates_and_trivial_edits_are_similar(encoder: Encoder) -> None:
    assert min(cosines(encoder, [(text, text) for text, _ in TRIVIAL])) > 0.9999
    assert min(cosines(encoder, TRIVIAL)) > 0.9


def test_word_order_changes_the_embedding_of_transformers(transformer: Encoder) -> None:
    assert max(cosines(transformer, ORDERS)) < 0.999


def test_micro_sees_words_without_their_order() -> None:
    """Its limit, as docs/results/wheel.md states it."""
    assert min(cosines(_load("micro"), ORDERS)) > 0.9999


def test_different_topics_are_dissimilar(encoder: Encoder) -> None:
    texts = ["How do I bake bread?", "The parliament passed a law.", "A goal in the last minute won the match."]
    similar = encoder.similarity(encoder.encode(texts), encoder.encode(texts))
    assert (np.asarray(similar)[~np.eye(3, dtype=bool)] < 0.4).all()


@pytest.mark.parametrize("script", FIRST_LETTERS)
def test_random_text_of_any_script_has_a_normalized_embedding(encoder: Encoder, script: str) -> None:
    draw = random.Random(script)  # noqa: S311  # no secret depends on it
    letters = [chr(FIRST_LETTERS[script] + number) for number in range(20)]
    texts = ["".join(draw.choices([*letters, " ", "?", "9"], k=draw.choice([1, 7, 90, 2000]))) for _ in range(20)]
    vectors = encoder.encode(["", " ", "\u200b", "\U0001f600", *texts], on_truncate="ignore", on_unknown="ignore")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
