from collections.abc import Sequence

from edgeembed_bench.workload import texts_of_lengths

_TEXTS = ["a b c d", "e f ggg h i", "j"]


def _count(texts: Sequence[str]) -> list[int]:
    """Count one token per word, three per long word, and two special tokens per text."""
    return [2 + sum(3 if len(word) > 2 else 1 for word in text.split()) for text in texts]


def test_texts_have_the_given_number_of_tokens_or_a_few_fewer() -> None:
    texts_by_length = texts_of_lengths(_TEXTS, (4, 8, 32), 3, _count)
    assert list(texts_by_length) == [4, 8, 32]
    for length, texts in texts_by_length.items():
        assert len(texts) == 3
        assert all(length - 2 <= tokens <= length for tokens in _count(texts))


def test_texts_of_a_length_differ_if_there_are_enough_words() -> None:
    assert len(set(texts_of_lengths(_TEXTS, (4,), 3, _count)[4])) == 3


def test_words_are_repeated_if_there_are_too_few() -> None:
    (text,) = texts_of_lengths(["one word"], (512,), 1, _count)[512]
    assert 509 <= _count([text])[0] <= 512


def test_length_exceeded_by_a_single_word_is_left_out() -> None:
    assert list(texts_of_lengths(["ggg ggg"], (4, 8), 1, _count)) == [8]


def test_no_texts_if_tokens_cannot_be_counted() -> None:
    assert texts_of_lengths(_TEXTS, (4, 8), 2, lambda _: None) == {}
    assert texts_of_lengths(_TEXTS, (), 2, _count) == {}
