"""Bigram shift with encoders that ignore word order and encoders that read it."""

import itertools
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.evaluate import evaluate
from edgeembed.papers.cmow.tasks.word_order import SHUFFLED, SWAPPED, WordOrder, read_word_order, score_word_order

from ..conftest import NameEncoders  # noqa: TID252  # tests are not a package

_SUBJECTS = ["baker", "farmer", "sailor", "teacher", "painter", "doctor", "singer", "driver", "lawyer", "dancer"]
_VERBS = ["sees", "likes", "calls", "helps", "hears", "finds", "meets", "pays", "hires", "draws"]
SENTENCES = [
    f"The {first} who {verb} a {second} went home early."
    for first, verb, second in itertools.product(_SUBJECTS, _VERBS, _SUBJECTS)
    if first != second
][:600]


class _Words:
    """Sums random vectors of words, or of bigrams."""

    def __init__(self, *, reads_order: bool) -> None:
        self.reads_order = reads_order

    def encode(self, texts: Any, /, *, batch_size: int = 32) -> Any:  # noqa: ARG002
        return np.stack([self._sum(text.lower().split()) for text in texts])

    encode_query = encode
    encode_document = encode

    def _sum(self, words: list[str]) -> Any:
        seen = list(itertools.pairwise(words)) if self.reads_order else words
        seeds = sorted(
            zlib.crc32(repr(each).encode()) for each in seen
        )  # sorted, so that rounding does not depend on order
        return np.sum([np.random.default_rng(seed).normal(size=48) for seed in seeds], axis=0, dtype=np.float32)


@pytest.fixture
def text(tmp_path: Path) -> str:
    file = tmp_path / "text.txt"
    file.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return str(file)


def test_changed_sentences_have_the_same_words_and_the_first_and_last_stay(text: str) -> None:
    pairs = read_word_order(text)
    assert len(pairs.original) == len(SENTENCES)
    for original, swapped, shuffled in zip(pairs.original, pairs.swapped, pairs.shuffled, strict=True):
        before, after = original.split(), swapped.split()
        assert Counter(before) == Counter(after) == Counter(shuffled.split())
        moved = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
        assert moved == [moved[0], moved[0] + 1]
        assert moved[0] > 0
        assert moved[1] < len(before) - 1
    assert pairs == read_word_order(text)


def test_a_sum_of_word_vectors_is_at_chance_and_a_sum_of_bigram_vectors_is_not(text: str) -> None:
    pairs = read_word_order(text)
    unordered, ordered = (score_word_order(_Words(reads_order=reads), pairs) for reads in (False, True))
    assert unordered.value == pytest.approx(50, abs=10)
    assert unordered.details == pytest.approx({SWAPPED: 1, SHUFFLED: 1}, abs=1e-6)
    assert ordered.value > 90
    assert ordered.details[SHUFFLED] < ordered.details[SWAPPED] < 0.9


def test_word_order_has_its_own_table(text: str, name_encoders: NameEncoders) -> None:
    name_encoders(lambda name: _Words(reads_order=name == "bigrams"))
    found = evaluate(["bigrams"], WordOrder(text), against="words")
    table = found.to_markdown()
    assert table.startswith("## Word order")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]
    assert [row[0] for row in rows[2:]] == ["words", "bigrams"]
    assert rows[2][2:] == ["1.0000", "1.0000"]


def test_too_few_sentences_are_an_error(tmp_path: Path) -> None:
    file = tmp_path / "short.txt"
    file.write_text("Only this one sentence has words enough to change.\nToo short, this.\n", encoding="utf-8")
    with pytest.raises(InputError, match="has 1 sentences of 5 to 30 words"):
        read_word_order(str(file))
