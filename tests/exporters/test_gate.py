from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from edgeembed_exporters import BundleSettings, export
from edgeembed_exporters.gate import (
    GateError,
    check_parity,
    check_ranking,
    check_size,
    compare,
    default_sentences,
    measure_parity,
    worst_lines,
)
from edgeembed_exporters.precision import PRECISIONS
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.parity import Parity, WorstSentence
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize

from .conftest import HIDDEN, SENTENCES, make_model

Matrix = np.ndarray[Any, np.dtype[np.float32]]


def random_vectors(count: int, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).standard_normal((count, 6)).astype(np.float32)


def names(count: int) -> list[str]:
    return [f"sentence {i}" for i in range(count)]


def test_parity_is_the_cosine_of_each_sentence() -> None:
    expected = np.array([[1, 0], [0, 2], [3, 4]], dtype=np.float32)
    given = np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32)
    parity = measure_parity(["a", "b", "c"], expected, given)
    assert parity.min_cosine == pytest.approx(0.6)
    assert parity.mean_cosine == pytest.approx(2.6 / 3)
    assert parity.worst_sentences[0].text == "c"


def test_the_ten_worst_sentences_are_in_ascending_order() -> None:
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


def test_ranks_are_equal_if_only_norms_differ() -> None:
    vectors = random_vectors(40)
    parity = measure_parity(names(40), vectors, 3 * vectors)
    assert (parity.spearman, parity.top_10_overlap) == pytest.approx((1, 1))


def test_ranks_reveal_other_neighbors_that_high_cosines_hide() -> None:
    shared = np.full(6, 9, np.float32)  # all sentences are alike, as in many models
    parity = measure_parity(names(40), shared + random_vectors(40), shared + random_vectors(40, seed=1))
    assert parity.min_cosine > 0.9
    assert parity.spearman is not None
    assert parity.top_10_overlap is not None
    assert abs(parity.spearman) < 0.3
    assert parity.top_10_overlap < 0.5


def test_equal_vectors_are_neighbors_in_a_stable_order() -> None:
    vectors = np.repeat(random_vectors(3), 20, axis=0)
    noise = 1e-8 * random_vectors(60, seed=1)
    assert measure_parity(names(60), vectors, (vectors + noise).astype(np.float32)).top_10_overlap == 1


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_sentences_have_no_rank_agreement(count: int) -> None:
    parity = measure_parity(names(count), random_vectors(count), random_vectors(count))
    assert parity.min_cosine == parity.p01_cosine == pytest.approx(1)
    assert (parity.spearman, parity.top_10_overlap) == (None, None)


def test_the_overlap_needs_more_than_eleven_sentences() -> None:
    assert measure_parity(names(11), random_vectors(11), random_vectors(11, seed=1)).top_10_overlap is None
    assert measure_parity(names(12), random_vectors(12), random_vectors(12, seed=1)).top_10_overlap is not None


def test_equal_vectors_have_no_rank_correlation() -> None:
    same = np.ones((20, 4), dtype=np.float32)
    assert measure_parity(names(20), same, same).spearman is None


def test_two_zero_vectors_are_equal() -> None:
    zeros = np.zeros((1, 2), dtype=np.float32)
    assert measure_parity([""], zeros, zeros).min_cosine == 1


@pytest.mark.parametrize("vector", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [-1.0, 0.0]])
def test_a_broken_vector_fails_and_comes_first(vector: list[float]) -> None:
    expected = np.array([[1, 0], [0.9, 0.1], [0, 1]], np.float32)
    given = np.array([[1, 0], [0.1, 0.9], vector], np.float32)
    parity = measure_parity(["good", "bad", "broken"], expected, given)
    with pytest.raises(GateError, match=r"required is 0\.5.*'broken'") as caught:
        check_parity(parity, 0.5)
    assert caught.value.parity is parity


@pytest.mark.parametrize("min_cosine", [-1.0, 0.0, 0.5])
def test_nan_passes_no_limit(min_cosine: float) -> None:
    parity = measure_parity(["a", "b"], np.ones((2, 2), np.float32), np.array([[1, 1], [np.nan, 1]], np.float32))
    with pytest.raises(GateError, match="is nan, required"):
        check_parity(parity, min_cosine)


def test_the_error_is_one_line_and_has_the_ten_worst_sentences() -> None:
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
    with pytest.raises(GateError, match="allowed are 1"):
        check_size(1_000_001, 1)


def test_repeated_sentences_count_once(model: SentenceTransformer, exported: Callable[[str], Path]) -> None:
    once = compare(model, exported("int8"), SENTENCES)
    assert compare(model, exported("int8"), SENTENCES * 3) == once
    assert once.sentences == len(SENTENCES)
    assert "" in SENTENCES


def test_another_dimension_fails(exported: Callable[[str], Path]) -> None:
    with pytest.raises(GateError, match=f"have 8 dimensions, expected {HIDDEN}"):
        compare(make_model(dense=False), exported("fp32"), SENTENCES)


def test_a_bundle_that_cannot_encode_fails(
    model: SentenceTransformer, exported: Callable[[str], Path], tmp_path: Path
) -> None:
    with pytest.raises(GateError, match="cannot encode; nothing was written"):
        compare(model, tmp_path, SENTENCES)


def alike(vectors: Matrix) -> Matrix:
    """Return embeddings that are all near one direction, but keep their order."""
    made: Matrix = (0.01 * vectors + np.array([1, 0, 0, 0, 0, 0])).astype(np.float32)
    return made


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            random_vectors(40, seed=1),
            r"the rank correlation with the model over 40 sentences is -?0\.\d+, required is 0.85",
        ),
        (
            np.zeros((40, 6), np.float32),
            r"the rank correlation with the model over 40 sentences is 0\.00000, required is",
        ),
    ],
)
def test_a_lost_ranking_is_refused_although_all_cosines_are_high(given: Matrix, message: str) -> None:
    parity = measure_parity(names(40), alike(random_vectors(40)), alike(given))
    check_parity(parity, 0.99)
    with pytest.raises(GateError, match=message) as caught:
        check_ranking(parity, 0.85, 0.6, "int4")
    assert str(caught.value).endswith("nothing was written: choose a higher precision or lower min_rank")
    assert caught.value.parity is parity


def test_lost_neighbors_are_refused_although_the_groups_of_texts_are_kept() -> None:
    """Half of all pairs are of texts of two groups, which are far apart: their order hides that of the neighbors."""
    groups = np.repeat(np.array([[9, 0, 0, 0, 0, 0], [-9, 0, 0, 0, 0, 0]], np.float32), 30, axis=0)
    parity = measure_parity(names(60), groups + random_vectors(60), groups + random_vectors(60, seed=1))
    assert parity.spearman is not None
    with pytest.raises(
        GateError, match=r"the overlap of the ten nearest with the model's over 60 sentences is 0\.[34]"
    ):
        check_ranking(parity, min(0.7, parity.spearman), 0.6)


def test_no_higher_precision_is_advised_at_fp32() -> None:
    parity = measure_parity(names(40), random_vectors(40), random_vectors(40, seed=1))
    with pytest.raises(GateError, match="nothing was written: lower min_cosine"):
        check_parity(parity, 0.9, "fp32")
    with pytest.raises(GateError, match="nothing was written: lower min_rank"):
        check_ranking(parity, 0.9, 0.9, "fp32")


@pytest.mark.parametrize("vectors", [random_vectors(11), np.ones((40, 6), np.float32)])
def test_too_few_sentences_and_equal_ones_have_no_ranking_to_lose(vectors: Matrix) -> None:
    noise = random_vectors(len(vectors), seed=1)
    check_ranking(measure_parity(names(len(vectors)), vectors, noise), 0.99, 0.99)


def test_an_export_is_refused_that_loses_the_ranking(tmp_path: Path) -> None:
    model = _nearly_constant_model()
    limits: dict[str, Any] = {"precision": "int4", "min_cosine": 0.9}
    with pytest.raises(GateError, match=r"the rank correlation with the model .* required is 0\.85"):
        export(model, tmp_path / "b", BundleSettings(**limits))
    assert list(tmp_path.iterdir()) == []
    report = export(model, tmp_path / "b", BundleSettings(**limits, min_rank=0, min_overlap=0))
    assert report.parity.spearman is not None
    assert report.parity.top_10_overlap is not None
    assert report.parity.min_cosine > 0.999
    assert report.parity.spearman < PRECISIONS["int4"].min_rank
    shown = f"rank correlation of all pairs {report.parity.spearman:.5f}, {report.parity.top_10_overlap:.1%} of the ten"
    assert shown in str(report)


def _nearly_constant_model() -> SentenceTransformer:
    """Return a model with a head that keeps a fiftieth of what differs between texts, beside what they share."""
    wide = make_model(dense=False)
    shared = wide.encode(default_sentences()[:20], convert_to_tensor=True).mean(dim=0)
    torch.manual_seed(0)
    weight = 0.02 * torch.eye(HIDDEN) + torch.outer(torch.randn(HIDDEN), shared / shared.norm())
    head = Dense(HIDDEN, HIDDEN, bias=False, activation_function=None, init_weight=weight)
    made: SentenceTransformer = SentenceTransformer(modules=[*wide, head, Normalize()], device="cpu").eval()
    return made


@pytest.mark.parametrize("limit", ["min_rank", "min_overlap"])
def test_a_limit_on_the_ranking_needs_enough_sentences(model: SentenceTransformer, tmp_path: Path, limit: str) -> None:
    given: dict[str, Any] = {limit: 0.5}
    with pytest.raises(InputError, match=rf"{limit} is 0\.5, and there are 11 sentences to rank; expected at least 12"):
        export(model, tmp_path / "b", BundleSettings(**given), sentences=SENTENCES[:11])
