"""Reciprocal rank fusion."""

import pytest
from edgeembed_runtime.index.hybrid import reciprocal_rank_fusion


def test_scores_are_sums_of_reciprocal_ranks() -> None:
    fused = reciprocal_rank_fusion([[7, 3, 5], [3, 9]])
    assert list(fused) == [3, 7, 9, 5]
    assert fused[3] == pytest.approx(1 / 62 + 1 / 61)
    assert fused[7] == pytest.approx(1 / 61)  # found by one ranking alone
    assert fused[5] == pytest.approx(1 / 63)


def test_ties_are_in_ascending_order_of_position() -> None:
    assert list(reciprocal_rank_fusion([[8, 2], [2, 8]])) == [2, 8]


def test_fusion_of_nothing_is_empty() -> None:
    assert reciprocal_rank_fusion([]) == {}
    assert reciprocal_rank_fusion([[], []]) == {}
    assert list(reciprocal_rank_fusion([[], [4, 1]])) == [4, 1]
