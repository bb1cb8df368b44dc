import numpy as np
import pytest
from edgeembed_bench.stats import MIN_FOR_INTERVAL, Quartiles, mean_interval, ratio_interval


def test_quartiles_of_samples() -> None:
    found = Quartiles.of([4.0, 1.0, 3.0, 2.0, 5.0])
    assert (found.q1, found.median, found.q3) == (2.0, 3.0, 4.0)


def test_interval_of_a_mean_is_students_t() -> None:
    # mean 5, standard deviation sqrt(10), 5 values: t(0.975, 4) = 2.776445
    found = mean_interval([1.0, 3.0, 5.0, 7.0, 9.0])
    assert found.value == 5
    assert found.low == pytest.approx(5 - 2.776445 * np.sqrt(10 / 5))
    assert found.high == pytest.approx(5 + 2.776445 * np.sqrt(10 / 5))
    assert found.reason is None


def test_the_ratio_is_the_geometric_mean_and_lies_in_the_middle_of_its_interval_on_a_log_scale() -> None:
    found = ratio_interval([2.0, 8.0, 4.0, 4.0], [1.0, 2.0, 2.0, 1.0])
    assert found.value == pytest.approx((2 * 4 * 2 * 4) ** (1 / 4))
    assert found.low is not None
    assert found.high is not None
    assert found.low * found.high == pytest.approx(found.value**2)
    assert found.low > 0


def test_common_drift_does_not_widen_the_interval() -> None:
    baseline = np.random.default_rng(0).uniform(1, 100, 50)
    found = ratio_interval(3 * baseline, baseline)
    assert (found.value, found.low, found.high) == pytest.approx((3, 3, 3))


@pytest.mark.parametrize(("processes", "measured"), [(1, "1 process was"), (2, "2 processes were")])
def test_fewer_than_three_processes_have_no_interval_but_a_reason(processes: int, measured: str) -> None:
    found = ratio_interval([3.0] * processes, [2.0] * processes)
    assert found.value == pytest.approx(1.5)
    assert (found.low, found.high) == (None, None)
    assert found.reason == f"{measured} measured; a confidence interval needs at least {MIN_FOR_INTERVAL}"
    assert ratio_interval([3.0] * 3, [2.0] * 3).reason is None


@pytest.mark.parametrize("processes", [3, 10])
@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_the_95_percent_interval_of_a_ratio_covers_93_to_97_percent(processes: int, noise: float) -> None:
    draw = np.random.default_rng(processes)
    medians = draw.lognormal(0, noise, (2, 4000, processes))
    found = [ratio_interval(1.3 * samples, baseline) for samples, baseline in zip(*medians, strict=True)]
    covers = [each.low is not None and each.high is not None and each.low <= 1.3 <= each.high for each in found]
    assert 0.93 <= np.mean(covers) <= 0.97
