import numpy as np
import pytest
from edgeembed_bench.estimates import median_difference, median_ratio, spread


def test_spread_is_the_median_and_the_quartiles() -> None:
    found = spread([4.0, 1.0, 3.0, 2.0, 5.0])
    assert (found.q1, found.median, found.q3) == (2.0, 3.0, 4.0)


def test_the_ratio_is_that_of_the_medians() -> None:
    found = median_ratio([2.0, 4.0, 60.0], [1.0, 2.0, 3.0])
    assert found.value == 2.0


def test_a_ratio_that_never_changes_has_no_width() -> None:
    baseline = np.random.default_rng(0).uniform(1, 100, 50)
    found = median_ratio(list(3 * baseline), list(baseline))
    assert found.value == pytest.approx(3)
    assert found.low == pytest.approx(3)
    assert found.high == pytest.approx(3)


def test_the_interval_of_a_median_is_where_order_statistics_put_it() -> None:
    # Of 101 samples, the ranks 41 and 61 enclose the median with 95 % confidence (binomial, by hand).
    found = median_difference([float(rank) for rank in range(101)], [0.0] * 101)
    assert found.value == 50
    assert found.low == pytest.approx(40, abs=1.5)
    assert found.high == pytest.approx(60, abs=1.5)


def test_the_difference_is_taken_pair_by_pair() -> None:
    assert median_difference([10.0, 200.0, 3000.0], [9.0, 198.0, 2000.0]).value == 2.0


def test_one_sample_has_no_interval() -> None:
    found = median_ratio([3.0], [2.0])
    assert (found.value, found.low, found.high) == (1.5, 1.5, 1.5)


def test_estimates_repeat_with_the_seed() -> None:
    samples = list(np.random.default_rng(1).normal(size=40))
    assert median_difference(samples, [0.0] * 40) == median_difference(samples, [0.0] * 40)
