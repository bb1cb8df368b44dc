"""Weights, updates and scores of centers of interest."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import Center, InputError, InterestSettings
from edgeembed_runtime.interests.centers import (
    center_weight,
    interest_scores,
    nearest_center,
    normalized_embedding,
    shifted_vector,
)
from hypothesis import given
from hypothesis import strategies as st

_DAY = 86_400.0
_SETTINGS = InterestSettings()


def _vector(*numbers: float) -> npt.NDArray[np.float32]:
    return normalized_embedding(numbers, len(numbers))


def _center(number: int, vector: npt.NDArray[np.float32], kind: Any = "interest", heavy: float = 1.0) -> Center:
    return Center(number, kind, "", 1, 0, 0.0, 0.0, 0.0, heavy, vector)


def test_weight_is_uses_plus_viewed_minutes() -> None:
    assert center_weight(3, 120, 0, _SETTINGS) == 5


def test_weight_decays_linearly_to_zero_at_the_horizon() -> None:
    assert center_weight(2, 0, 15 * _DAY, _SETTINGS) == pytest.approx(1)
    assert center_weight(2, 0, 30 * _DAY, _SETTINGS) == 0
    assert center_weight(2, 0, 3000 * _DAY, _SETTINGS) == 0
    assert center_weight(2, 0, 5 * _DAY, InterestSettings(horizon_days=10)) == pytest.approx(1)


def test_negative_age_counts_as_zero() -> None:
    assert center_weight(2, 0, -99 * _DAY, _SETTINGS) == center_weight(2, 0, 0, _SETTINGS)


@given(st.integers(0, 10**6), st.floats(0, 1e9), st.floats(-1e10, 1e10), st.floats(0, 1e10), st.floats(0, 1e9))
def test_weight_grows_with_use_and_never_with_age(
    uses: int, seconds: float, age: float, later: float, more: float
) -> None:
    assert 0 <= center_weight(uses, seconds, age + later, _SETTINGS) <= center_weight(uses, seconds, age, _SETTINGS)
    assert center_weight(uses + 1, seconds + more, age, _SETTINGS) >= center_weight(uses, seconds, age, _SETTINGS)


def test_nearest_center_considers_one_kind_only() -> None:
    centers = [
        _center(1, _vector(1, 0, 0)),
        _center(2, _vector(0, 1, 0)),
        _center(3, _vector(0.6, 0.8, 0), "disinterest"),
    ]
    assert nearest_center(centers, "interest", _vector(0.6, 0.8, 0), _SETTINGS) is centers[1]
    assert nearest_center(centers, "disinterest", _vector(1, 0, 0), _SETTINGS) is centers[2]
    assert nearest_center(centers, "interest", _vector(0, 0, 1), _SETTINGS) is None
    assert nearest_center([], "interest", _vector(0, 0, 1), _SETTINGS) is None


def test_nearest_center_respects_the_threshold() -> None:
    center = _center(1, _vector(1, 0))
    at = InterestSettings(near_cosine=0.6)
    assert nearest_center([center], "interest", _vector(0.6001, 0.8), at) is center
    assert nearest_center([center], "interest", _vector(0.5999, 0.8), at) is None


def test_threshold_defaults_to_0_4() -> None:
    center = _center(1, _vector(1, 0))
    assert nearest_center([center], "interest", _vector(0.4001, 0.9165), _SETTINGS) is center
    assert nearest_center([center], "interest", _vector(0.3999, 0.9166), _SETTINGS) is None


def test_weight_is_finite_with_tiny_seconds_per_use() -> None:
    assert center_weight(1, 300, 99 * _DAY, InterestSettings(seconds_per_use=1e-320)) == 0


def test_center_moves_by_the_shift_and_stays_normalized() -> None:
    halfway = shifted_vector(_center(1, _vector(1, 0)), _vector(0, 1), InterestSettings(shift=0.5))
    assert halfway == pytest.approx([math.sqrt(0.5)] * 2, abs=1e-6)
    tenth = shifted_vector(_center(1, _vector(1, 0)), _vector(0, 1), _SETTINGS)
    assert tenth == pytest.approx(np.array([0.9, 0.1]) / math.hypot(0.9, 0.1), abs=1e-6)
    assert tenth.dtype == np.float32


def test_one_fresh_like_has_half_of_the_greatest_pull() -> None:
    documents = np.stack([_vector(1, 0), _vector(0.6, 0.8), _vector(-1, 0)])
    assert interest_scores([_center(1, _vector(1, 0))], documents) == pytest.approx([0.5, 0.3, 0], abs=1e-6)
    assert interest_scores([_center(1, _vector(1, 0), heavy=9)], documents) == pytest.approx([0.9, 0.54, 0], abs=1e-6)
    assert interest_scores([_center(1, _vector(1, 0), heavy=0)], documents) == pytest.approx([0, 0, 0])


def test_score_is_the_maximum_over_centers() -> None:
    centers = [_center(1, _vector(1, 0), heavy=1), _center(2, _vector(0.8, 0.6), heavy=9)]
    assert interest_scores(centers, _vector(1, 0)[None]) == pytest.approx([0.72], abs=1e-6)


def test_disinterest_lowers_the_score() -> None:
    document = _vector(0.6, 0.8)[None]
    disinterest = _center(2, _vector(0.6, 0.8), "disinterest")
    assert interest_scores([disinterest], document) == pytest.approx([-0.5], abs=1e-6)
    assert interest_scores([_center(1, _vector(1, 0)), disinterest], document) == pytest.approx([-0.2], abs=1e-6)


def test_scores_are_zero_without_centers() -> None:
    assert interest_scores([], np.eye(3, dtype=np.float32)).tolist() == [0, 0, 0]


@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(0, 6))
def test_scores_are_within_one_and_equal_for_equal_documents(seed: int, likes: int, dislikes: int) -> None:
    random = np.random.default_rng(seed)
    kinds = ["interest"] * likes + ["disinterest"] * dislikes
    centers = [
        _center(i, normalized_embedding(random.standard_normal(5), 5), kind, float(random.exponential(5)))
        for i, kind in enumerate(kinds)
    ]
    documents = np.stack([normalized_embedding(random.standard_normal(5), 5) for _ in range(7)])
    scores = interest_scores(centers, np.concatenate([documents, documents[::-1]]))
    assert scores.dtype == np.float32
    assert (np.abs(scores) <= 1).all()
    assert scores[:7].tolist() == scores[7:][::-1].tolist()


def test_embedding_of_any_norm_is_normalized() -> None:
    assert normalized_embedding([3, 4], 2) == pytest.approx([0.6, 0.8])
    assert normalized_embedding(np.array([3e38, 0], dtype=np.float32), 2) == pytest.approx([1, 0])
    assert normalized_embedding(np.array([1e-40, 0], dtype=np.float32), 2) == pytest.approx([1, 0])


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([1, 2, 3], r"shape \(3,\), expected 2 finite numbers"),
        ([[1, 2]], r"shape \(1, 2\)"),
        ([1, math.nan], "contains NaN or infinity"),
        ([1, 1e300], "contains NaN or infinity"),
        ([0, 0], "all zeros"),
        (["a", "b"], "the embedding is list"),
        ([[1], [1, 2]], "the embedding is list"),
        ({}, "the embedding is dict"),
    ],
)
def test_invalid_embedding_is_rejected(vector: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        normalized_embedding(vector, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"near_cosine": 1.1}, "near_cosine is 1.1, expected at most 1"),
        ({"near_cosine": 0}, "near_cosine is 0, expected more"),
        ({"max_centers": 0}, "max_centers is 0, expected an integer of at least 1"),
        ({"max_centers": 2.5}, "max_centers is 2.5, expected an integer"),
        ({"max_centers": 1 << 63}, "max_centers is 9223372036854775808, expected an integer of at least 1, below"),
        ({"shift": -0.1}, "shift is -0.1, expected a finite number of at least 0"),
        ({"horizon_days": math.inf}, "horizon_days is inf"),
        ({"seconds_per_use": math.nan}, "seconds_per_use is nan"),
        ({"min_read_seconds": "20"}, "min_read_seconds is '20'"),
        ({"query_weight": True}, "query_weight is True"),
        ({"query_weight": 2}, "expected at most 1"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        InterestSettings(**settings)
