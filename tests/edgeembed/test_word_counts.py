"""Counting words in bounded memory, and vocabularies of such counts."""

import random
from collections import Counter

import pytest
from edgeembed_runtime.errors import InputError
from tokenizers import normalizers

from edgeembed.vocabulary import train_multilingual_wordpiece, train_wordpiece, word_counts, wordpiece
from edgeembed.vocabulary.word_counts import WordCounts

NORMALIZER = normalizers.BertNormalizer(lowercase=True)


def sentences(count: int) -> list[str]:
    generator = random.Random(0)  # noqa: S311  # not for cryptography
    words = ["".join(generator.choices("abcdefgh", k=generator.randint(2, 6))) for _ in range(400)]
    weights = [1 / rank for rank in range(1, 401)]
    return [" ".join(generator.choices(words, weights, k=8)).capitalize() + "." for _ in range(count)]


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 50 strings be counted in memory, 400 being in the text."""
    monkeypatch.setattr(word_counts, "_STRINGS_IN_MEMORY", 50)


@pytest.mark.usefixtures("on_disk")
def test_counts_are_exact_however_many_words_there_are() -> None:
    text = sentences(1000)
    expected = Counter(word for sentence in text for word in sentence.lower().removesuffix(".").split())
    expected["."] = len(text)
    with WordCounts(iter(text), NORMALIZER) as words:
        assert dict(words) == expected
        ranked = sorted(expected.items(), key=lambda item: (-item[1], item[0]))
        assert list(words.most_frequent(30)) == ranked[:30]
        assert list(words.most_frequent(10_000)) == ranked


def test_a_vocabulary_does_not_depend_on_where_its_words_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    text = sentences(300)
    in_memory = train_wordpiece(text, 150).to_str(), train_multilingual_wordpiece([text, text[:9]], 150).to_str()
    monkeypatch.setattr(word_counts, "_STRINGS_IN_MEMORY", 50)
    on_disk = train_wordpiece(iter(text), 150).to_str(), train_multilingual_wordpiece([text, text[:9]], 150).to_str()
    assert on_disk == in_memory


def test_words_beyond_the_maximum_count_for_the_characters_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ["seven seven seven boxes boxes boxes"] * 5 + ["quick quick"]
    assert "quick" in train_wordpiece(text, 60).get_vocab()
    monkeypatch.setattr(wordpiece, "MAX_WORDS", 2)
    vocabulary = train_wordpiece(text, 60).get_vocab()
    assert {"seven", "boxes", "q", "##k"} <= vocabulary.keys()
    assert "quick" not in vocabulary


@pytest.mark.usefixtures("on_disk")
def test_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_counts, "_SCHEMA", f"PRAGMA max_page_count = 4; {word_counts._SCHEMA}")
    with pytest.raises(InputError, match="temporary files: database or disk is full; expected free space"):
        train_wordpiece(sentences(300), 150)
