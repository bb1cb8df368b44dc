"""Targets by several teachers, against a computation by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.store_manifest import EncodedBy
from sklearn.decomposition import PCA

from edgeembed.embeddings import teachers as module
from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.embeddings.teachers import WeightedVectors, combine_projections, combine_similarities
from edgeembed.embeddings.text_vectors import map_vectors

TEXTS = [f"text {number}" for number in range(60)]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", 16)


def teacher(name: str, vectors: npt.NDArray[Any], folder: Path, weight: float) -> WeightedVectors:
    """Return the vectors of a teacher, read from a store of its own in the order of `TEXTS`."""
    store = EmbeddingStore.create(folder / name, EncodedBy(name, name * 64, vectors.shape[1], False, "fp32", None, ""))
    store.append(TEXTS[::-1], vectors[::-1], is_complete=True)
    return WeightedVectors(map_vectors(store, TEXTS, folder / "vectors", reused=0), weight)


@pytest.fixture
def both(tmp_path: Path) -> list[WeightedVectors]:
    """Return two teachers, one of nearly equal cosines around 0.99, as e5 has them."""
    random = np.random.default_rng(0)
    one = random.normal(size=(60, 6))
    other = 5 + random.normal(size=(60, 4)) * [0.4, 0.1, 0.1, 0.1]
    return [teacher("a", one, tmp_path, 1.0), teacher("b", other, tmp_path, 3.0)]


def centered_cosines(each: WeightedVectors) -> npt.NDArray[Any]:
    vectors = each.vectors.vectors.astype(np.float64)
    centered = vectors - vectors.mean(axis=0)
    unit = centered / np.linalg.norm(centered, axis=1, keepdims=True)
    cosines: npt.NDArray[Any] = unit @ unit.T
    return cosines


def test_similarities_are_the_weighted_sum_of_standardized_ones(both: list[WeightedVectors], tmp_path: Path) -> None:
    combined = combine_similarities(both, tmp_path / "combined")
    assert combined.shape == (60, 10)
    found = combined.vectors.astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-3)
    pairs = np.triu_indices(60, 1)
    expected = 0
    for each in both:
        cosines = centered_cosines(each)[pairs]
        expected = expected + each.weight * (cosines - cosines.mean()) / cosines.std()
    ours = (found @ found.T)[pairs]
    slope, offset = np.polyfit(ours, expected, 1)  # a scale and an offset are left to the loss
    assert slope > 0
    np.testing.assert_allclose(slope * ours + offset, expected, atol=0.05)


def test_a_heavy_teacher_decides(both: list[WeightedVectors], tmp_path: Path) -> None:
    alone = [WeightedVectors(both[0].vectors, 1e6), both[1]]
    found = combine_similarities(alone, tmp_path / "combined").vectors.astype(np.float64)
    np.testing.assert_allclose(found @ found.T, centered_cosines(both[0]), atol=3e-3)


def test_projections_stand_side_by_side(both: list[WeightedVectors], tmp_path: Path) -> None:
    combined = combine_projections(both, [3, 2], tmp_path / "combined")
    assert combined.shape == (60, 5)
    found = combined.vectors.astype(np.float64)
    for each, part, share in ((both[0], found[:, :3], 0.25), (both[1], found[:, 3:], 0.75)):
        components = PCA(part.shape[1], svd_solver="full").fit_transform(each.vectors.vectors.astype(np.float64))
        unit = components / np.linalg.norm(components, axis=1, keepdims=True)
        np.testing.assert_allclose(part @ part.T, share * unit @ unit.T, atol=3e-3)


def test_the_name_of_a_combination_has_all_that_decides_it(both: list[WeightedVectors], tmp_path: Path) -> None:
    heavier = [both[0], WeightedVectors(both[1].vectors, 4.0)]
    found = [combine_similarities(each, tmp_path / "c") for each in (both, heavier, both)]
    found += [combine_projections(both, dimensions, tmp_path / "c") for dimensions in ([3, 2], [2, 3])]
    assert len({each.encoder.key for each in found}) == len({each.file for each in found}) == 4
    assert found[0] == found[2]
    assert (found[0].encoder.name, found[0].encoder.space, found[0].encoder.dimension) == ("a + b", None, 10)


def test_wrong_teachers_are_one_line(both: list[WeightedVectors], tmp_path: Path) -> None:
    short = EmbeddingStore.open(tmp_path / "b")
    fewer = WeightedVectors(map_vectors(short, TEXTS[:50], tmp_path / "vectors", reused=0))
    same = teacher("c", np.ones((60, 4)), tmp_path, 1.0)
    for teachers, message in (
        ([both[0], fewer], "the teachers have the vectors of 60 by a, 50 by b; expected those of the same texts"),
        ([both[0], WeightedVectors(both[1].vectors, 0)], "the weight of the teacher b is 0; expected a number above 0"),
        ([both[0], same], "all embeddings by c are equally similar; expected embeddings of texts that differ"),
    ):
        with pytest.raises(InputError, match=message):
            combine_similarities(teachers, tmp_path / "combined")
    with pytest.raises(InputError, match=r"7 components of 60 vectors of 6 dimensions by a are asked for; expected"):
        combine_projections(both, [7, 2], tmp_path / "combined")
