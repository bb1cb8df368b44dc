"""Merging of centers: which two, and what remains of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import Center, InterestSettings
from edgeembed_runtime.interests.centers import cheapest_merge, merge_centers, normalized_embedding
from hypothesis import given
from hypothesis import strategies as st

_DAY = 86_400.0
_SETTINGS = InterestSettings()


def _vector(*numbers: float) -> npt.NDArray[np.float32]:
    return normalized_embedding(numbers, len(numbers))


def _center(number: int, vector: npt.NDArray[np.float32], weight: float = 1.0, **changes: Any) -> Center:
    center = Center(number, "interest", f"text {number}", int(weight), 0, 0.0, 0.0, 0.0, weight, vector)
    return replace(center, **changes)


def _ids(centers: list[Center]) -> tuple[int, int]:
    survivor, absorbed = cheapest_merge(centers)
    return survivor.id, absorbed.id


def test_of_equally_heavy_centers_the_nearest_two_merge() -> None:
    centers = [_center(1, _vector(1, 0, 0)), _center(2, _vector(0, 1, 0)), _center(3, _vector(0, 0.9, 0.1))]
    assert _ids(centers) == (2, 3)
    assert _ids(centers[::-1]) == (3, 2)  # of two equal ones the first survives: the store gives the oldest first


def test_light_center_joins_a_neighbor_before_two_heavy_centers_that_are_nearer_to_each_other() -> None:
    centers = [_center(1, _vector(1, 0, 0), 50), _center(2, _vector(0.8, 0.6, 0), 50), _center(3, _vector(0, 0.7, 0.7))]
    assert _ids(centers) == (2, 3)


def test_center_with_more_reactions_survives() -> None:
    assert _ids([_center(1, _vector(1, 0), 1), _center(2, _vector(1, 0.1), 2)]) == (2, 1)
    assert _ids([_center(1, _vector(1, 0), 1), _center(2, _vector(1, 0.1), 0.9, uses=1)]) == (1, 2)
    assert _ids([_center(1, _vector(1, 0), 1), _center(2, _vector(1, 0.1), 1, views=1)]) == (2, 1)


def test_cost_is_the_increase_of_the_weighted_sum_of_squared_distances() -> None:
    random = np.random.default_rng(0)
    centers = [_center(i, _vector(*random.standard_normal(4)), float(random.integers(1, 9))) for i in range(6)]

    def cost(a: Center, b: Center) -> float:
        weights, vectors = np.array([a.weight, b.weight]), np.stack([a.vector, b.vector]).astype(np.float64)
        mean = weights @ vectors / weights.sum()
        return float((weights * ((vectors - mean) ** 2).sum(axis=1)).sum())

    costs = {frozenset((a.id, b.id)): cost(a, b) for a in centers for b in centers if a.id < b.id}
    assert frozenset(_ids(centers)) == min(costs, key=lambda pair: costs[pair])


def test_merged_center_has_the_weighted_mean_vector_and_the_sums() -> None:
    survivor = _center(1, _vector(1, 0), 3, views=2, view_seconds=60.0, first_used=5 * _DAY, last_used=6 * _DAY)
    absorbed = _center(2, _vector(0, 1), 1, views=1, view_seconds=30.0, first_used=2 * _DAY, last_used=9 * _DAY)
    merged = merge_centers(survivor, absorbed, 9 * _DAY, _SETTINGS)
    assert (merged.id, merged.kind, merged.example) == (1, "interest", "text 1")
    assert (merged.uses, merged.views, merged.view_seconds) == (4, 3, 90.0)
    assert (merged.first_used, merged.last_used) == (2 * _DAY, 9 * _DAY)
    assert merged.weight == 5.5
    assert merged.vector == pytest.approx(_vector(3, 1), abs=1e-6)
    assert merged.vector.dtype == np.float32


def test_merged_center_has_the_example_of_the_heavier_one() -> None:
    survivor, absorbed = _center(1, _vector(1, 0), 0.5, uses=2), _center(2, _vector(0, 1))
    assert merge_centers(survivor, absorbed, 0, _SETTINGS).example == "text 2"
    assert merge_centers(survivor, replace(absorbed, weight=0.5), 0, _SETTINGS).example == "text 1"


def test_merged_center_without_an_example_takes_the_other_one() -> None:
    survivor, absorbed = _center(1, _vector(1, 0), 2, example=""), _center(2, _vector(0, 1))
    assert merge_centers(survivor, absorbed, 0, _SETTINGS).example == "text 2"


def test_opposite_centers_of_equal_weight_leave_the_vector_of_the_survivor() -> None:
    merged = merge_centers(_center(1, _vector(1, 0)), _center(2, _vector(-1, 0)), 0, _SETTINGS)
    assert merged.vector.tolist() == [1, 0]


@given(st.integers(0, 2**32 - 1), st.lists(st.floats(0, 1e6), min_size=2, max_size=8))
def test_any_two_centers_become_one_with_a_unit_vector(seed: int, weights: list[float]) -> None:
    random = np.random.default_rng(seed)
    centers = [_center(i, _vector(*random.standard_normal(5)), weight) for i, weight in enumerate(weights)]
    survivor, absorbed = cheapest_merge(centers)
    assert survivor.id != absorbed.id
    assert survivor.uses >= absorbed.uses
    assert np.linalg.norm(merge_centers(survivor, absorbed, 0, _SETTINGS).vector) == pytest.approx(1, abs=1e-5)
