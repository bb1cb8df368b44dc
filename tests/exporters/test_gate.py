from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_exporters.gate import GateError, check_parity, check_size, compare, measure_parity, worst_lines
from edgeembed_runtime.manifest import Parity, WorstSentence
from sentence_transformers import SentenceTransformer

from .conftest import HIDDEN, SENTENCES, make_model

Matrix = np.ndarray[Any, np.dtype[np.float32]]


def random_vectors(count: int, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).standard_normal((count, 6)).astype(np.float32)


def names(count: int) -> list[str]:
    return [f"sentence {i}" for i in range(count)]


def test_parity_is_the_cosine_sentence_by_sentence() -> None:
    expected = np.array([[1, 0], [0, 2], [3, 4]], dtype=np.float32)
    given = np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32)
    parity = measure_parity(["a", "b", "c"], expected, given)
    assert parity.min_cosine == pytest.approx(0.6)
    assert parity.mean_cosine == pytest.approx(2.6 / 3)
    assert parity.worst_sentences[0].text == "c"


def test_the_ten_worst_sentences_are_kept_the_worst_first() -> None:
    expected = random_vectors(30)
    parity = measure_parity(names(30), expected, expected + np.float32(0.2) * random_vectors(30, seed=1))
    cosines = [each.cosine for each in parity.worst_sentences]
    assert (len(cosines), cosines[0]) == (10, parity.min_cosine)
    assert cosines == sorted(cosines)


def test_one_sentence_in_a_hundred_is_below_the_first_percentile() -> None:
    angles = np.linspace(0, 0.5, 301)
    given = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    parity = measure_parity(names(301), np.tile(np.array([1, 0], np.float32), (301, 1)), given)
    assert parity.p01_cosine == pytest.approx(np.cos(angles[-4]), abs=1e-6)


def test_ranks_agree_wholly_where_only_lengths_differ() -> None:
    vectors = random_vectors(40)
    parity = measure_parity(names(40), vectors, 3 * vectors)
    assert (parity.spearman, parity.top_10_overlap) == pytest.approx((1, 1))


def test_ranks_tell_other_neighbours_that_cosines_to_the_model_do_not() -> None:
    shared = np.full(6, 9, np.float32)  # all sentences are alike, as in many models
    parity = measure_parity(names(40), shared + random_vectors(40), shared + random_vectors(40, seed=1))
    assert parity.min_cosine > 0.9
    assert parity.spearman is not None
    assert parity.top_10_overlap is not None
    assert abs(parity.spearman) < 0.3
    assert parity.top_10_overlap < 0.5


def test_sentences_of_the_same_vector_are_neighbours_in_one_order() -> None:
    vectors = np.repeat(random_vectors(3), 20, axis=0)
    noise = 1e-8 * random_vectors(60, seed=1)
    assert measure_parity(names(60), vectors, (vectors + noise).astype(np.float32)).top_10_overlap == 1


@pytest.mark.parametrize("count", [1, 2])
def test_a_sentence_or_two_have_no_ranks_to_agree_on(count: int) -> None:
    parity = measure_parity(names(count), random_vectors(count), random_vectors(count))
    assert parity.min_cosine == parity.p01_cosine == pytest.approx(1)
    assert (parity.spearman, parity.top_10_overlap) == (None, None)


def test_ten_nearest_say_nothing_where_they_are_all_others() -> None:
    assert measure_parity(names(11), random_vectors(11), random_vectors(11, seed=1)).top_10_overlap is None
    assert measure_parity(names(12), random_vectors(12), random_vectors(12, seed=1)).top_10_overlap is not None


def test_a_model_that_gives_all_the_same_vector_has_no_ranks() -> None:
    same = np.ones((20, 4), dtype=np.float32)
    assert measure_parity(names(20), same, same).spearman is None


def test_two_vectors_of_zeros_are_the_same() -> None:
    zeros = np.zeros((1, 2), dtype=np.float32)
    assert measure_parity([""], zeros, zeros).min_cosine == 1


@pytest.mark.parametrize("vector", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [-1.0, 0.0]])
def test_a_broken_vector_does_not_pass_and_is_named_first(vector: list[float]) -> None:
    expected = np.array([[1, 0], [0.9, 0.1], [0, 1]], np.float32)
    given = np.array([[1, 0], [0.1, 0.9], vector], np.float32)
    parity = measure_parity(["good", "bad", "broken"], expected, given)
    with pytest.raises(GateError, match=r"demanded is 0\.5.*'broken'") as caught:
        check_parity(parity, 0.5)
    assert caught.value.parity is parity


@pytest.mark.parametrize("min_cosine", [-1.0, 0.0, 0.5])
def test_no_limit_lets_nan_pass(min_cosine: float) -> None:
    parity = measure_parity(["a", "b"], np.ones((2, 2), np.float32), np.array([[1, 1], [np.nan, 1]], np.float32))
    with pytest.raises(GateError, match="is nan, demanded"):
        check_parity(parity, min_cosine)


def test_the_message_stays_one_line_and_the_error_carries_the_ten_worst() -> None:
    parity = Parity(12, 0.5, 0.6, tuple(WorstSentence(f"line\n\x1b[31m {i}", 0.5) for i in range(10)), None, None, None)
    with pytest.raises(GateError) as caught:
        check_parity(parity, 0.99)
    error = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own
    assert "\n" not in str(error)
    assert error.parity == parity
    lines = worst_lines(error.parity)
    assert len(lines) == 10
    assert lines[0] == r"0.50000  'line\n\x1b[31m 0'"


def test_a_megabyte_is_a_million_bytes() -> None:
    check_size(1_000_000, 1)
    check_size(10**12, None)
    with pytest.raises(GateError, match="at most 1"):
        check_size(1_000_001, 1)


def test_a_sentence_that_comes_twice_counts_once(model: SentenceTransformer, exported: Callable[[str], Path]) -> None:
    once = compare(model, exported("int8"), SENTENCES)
    assert compare(model, exported("int8"), SENTENCES * 3) == once
    assert once.sentences == len(SENTENCES)
    assert "" in SENTENCES


def test_vectors_of_other_dimensions_do_not_pass(exported: Callable[[str], Path]) -> None:
    with pytest.raises(GateError, match=f"have 8 dimensions, expected {HIDDEN}"):
        compare(make_model(dense=False), exported("fp32"), SENTENCES)


def test_a_bundle_that_cannot_encode_does_not_pass(
    model: SentenceTransformer, exported: Callable[[str], Path], tmp_path: Path
) -> None:
    with pytest.raises(GateError, match="cannot encode; nothing was written"):
        compare(model, tmp_path, SENTENCES)
