"""Scores of asymmetric search, query by query."""

import numpy as np
import pytest

from edgeembed.evaluation import RetrievalSet
from experiments.asymmetric.asymmetric_search import bootstrap_interval, ndcg_at_10


def test_ndcg_of_a_query_equals_the_hand_computed_value() -> None:
    documents = {str(number): "text" for number in range(12)}
    task = RetrievalSet("set", {"a": "a", "b": "b", "c": "c"}, documents, {"a": {"0"}, "b": {"1", "11"}, "c": {"11"}})
    found = np.tile(-np.arange(12, dtype=np.float32), (3, 1))  # ranks the documents by number
    ideal = 1 + 1 / np.log2(3)
    assert ndcg_at_10(found, task) == pytest.approx([1, 1 / np.log2(3) / ideal, 0])


def test_the_interval_contains_the_mean_difference_and_not_zero_if_all_agree() -> None:
    low, high = bootstrap_interval(np.linspace(0.01, 0.05, 50))
    assert 0 < low < 3 < high < 5
    assert bootstrap_interval(np.zeros(5)) == [0, 0]
