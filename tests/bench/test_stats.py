import numpy as np
import pytest
import scipy.stats
from edgeembed_bench.stats import (
    MIN_FOR_INTERVAL,
    MIN_FOR_TEST,
    Quartiles,
    SignificanceTest,
    compare_times,
    mean_interval,
    paired_ratio,
    ratio_interval,
)


def test_quartiles_of_samples() -> None:
    quartiles = Quartiles.of([4.0, 1.0, 3.0, 2.0, 5.0])
    assert (quartiles.q1, quartiles.median, quartiles.q3) == (2.0, 3.0, 4.0)


def test_interval_of_a_mean_is_students_t() -> None:
    # mean 5, standard deviation sqrt(10), 5 values: t(0.975, 4) = 2.776445
    interval = mean_interval([1.0, 3.0, 5.0, 7.0, 9.0])
    assert interval.value == 5
    assert interval.low == pytest.approx(5 - 2.776445 * np.sqrt(10 / 5))
    assert interval.high == pytest.approx(5 + 2.776445 * np.sqrt(10 / 5))
    assert interval.reason is None


def test_the_ratio_is_the_geometric_mean_and_lies_in_the_middle_of_its_interval_on_a_log_scale() -> None:
    interval = ratio_interval([2.0, 8.0, 4.0, 4.0], [1.0, 2.0, 2.0, 1.0])
    assert interval.value == pytest.approx((2 * 4 * 2 * 4) ** (1 / 4))
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low * interval.high == pytest.approx(interval.value**2)
    assert interval.low > 0


def test_common_drift_does_not_widen_the_interval() -> None:
    baseline = np.random.default_rng(0).uniform(1, 100, 50)
    interval = ratio_interval(3 * baseline, baseline)
    assert (interval.value, interval.low, interval.high) == pytest.approx((3, 3, 3))


@pytest.mark.parametrize(("processes", "measured"), [(1, "1 process was"), (2, "2 processes were")])
def test_fewer_than_three_processes_have_no_interval_but_a_reason(processes: int, measured: str) -> None:
    interval = ratio_interval([3.0] * processes, [2.0] * processes)
    assert interval.value == pytest.approx(1.5)
    assert (interval.low, interval.high) == (None, None)
    assert interval.reason == f"{measured} measured; a confidence interval needs at least {MIN_FOR_INTERVAL}"
    assert ratio_interval([3.0] * 3, [2.0] * 3).reason is None


@pytest.mark.parametrize("processes", [3, 10])
@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_the_95_percent_interval_of_a_ratio_covers_93_to_97_percent(processes: int, noise: float) -> None:
    draw = np.random.default_rng(processes)
    medians = draw.lognormal(0, noise, (2, 4000, processes))
    intervals = [ratio_interval(1.3 * samples, baseline) for samples, baseline in zip(*medians, strict=True)]
    covers = [each.low is not None and each.high is not None and each.low <= 1.3 <= each.high for each in intervals]
    assert 0.93 <= np.mean(covers) <= 0.97


def _processes(factor: float, seed: int, processes: int = 10, between: float = 0.01) -> list[list[float]]:
    """Times of 100 texts of different lengths in each process; each process is a little slower or faster as a whole."""
    draw = np.random.default_rng(seed)
    texts = np.random.default_rng(1).lognormal(0, 0.4, (processes, 100))
    levels = draw.lognormal(0, between, (processes, 1))
    times: list[list[float]] = (factor * levels * texts * draw.lognormal(0, 0.05, texts.shape)).tolist()
    return times


def _mixed(processes: int) -> tuple[list[list[float]], list[list[float]]]:
    """Times of a subject that is 6 % slower on most texts, and much faster on those around the median length."""
    draw = np.random.default_rng(3)
    texts = 0.2 + 0.05 * np.arange(100)
    factors = np.where(np.abs(np.arange(100) - 49.5) < 10, 0.6, 1.06)
    own, baseline = texts * draw.lognormal(0, 0.01, (2, processes, 100))
    return (factors * own).tolist(), baseline.tolist()


def test_ratio_interval_and_p_value_are_of_the_times_of_the_same_texts() -> None:
    own, baseline = _mixed(10)
    test = compare_times(own, baseline)
    assert np.median(own) < 0.9 * np.median(baseline)
    assert test.ratio.value == pytest.approx(1.06, rel=0.01)
    assert test.ratio == paired_ratio(own, baseline)
    assert (test.ratio.low or 0) > 1
    assert test.is_significant


def test_p_value_is_that_of_students_t_test_on_the_logarithms() -> None:
    own, baseline = _processes(1.01, 1), _processes(1, 2)
    logarithms = np.median(np.log(own) - np.log(baseline), axis=1)
    expected = scipy.stats.ttest_1samp(logarithms, 0)
    test = compare_times(own, baseline)
    assert test.p_value == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert (test.ratio.low, test.ratio.high) == pytest.approx((np.exp(low), np.exp(high)))


@pytest.mark.parametrize("seed", range(20))
def test_significant_difference_has_an_interval_on_one_side_of_1(seed: int) -> None:
    own, baseline = _processes(1.02, 2 * seed), _processes(1, 2 * seed + 1)
    own[0] = [30 * time for time in own[0]]  # a process that other work disturbed
    for test in (compare_times(own, baseline), compare_times(_processes(1.02, 2 * seed), baseline)):
        excludes = (test.ratio.low or 0) > 1 or (test.ratio.high or 2) < 1
        assert excludes or not test.is_significant


def test_processes_that_agree_exactly_differ_significantly() -> None:
    baseline = _processes(1, 1)
    assert compare_times([[2 * time for time in times] for times in baseline], baseline).is_significant


def test_equal_subjects_hardly_ever_differ_significantly() -> None:
    significant = [
        compare_times(_processes(1, 2 * seed), _processes(1, 2 * seed + 1)).is_significant for seed in range(25)
    ]
    assert sum(map(bool, significant)) <= 1  # at a level of 1 %


def test_five_percent_is_nearly_always_significant() -> None:
    significant = [
        compare_times(_processes(1.05, 2 * seed), _processes(1, 2 * seed + 1)).is_significant for seed in range(20)
    ]
    assert sum(map(bool, significant)) >= 19


def test_the_interval_of_a_simulated_benchmark_covers_the_true_ratio_in_93_to_97_percent() -> None:
    draw = np.random.default_rng(4)
    trials, processes, calls = 4000, 10, 25
    texts = draw.lognormal(0, 0.4, (trials, processes, calls))  # the same for both subjects
    levels = draw.lognormal(0, 0.03, (2, trials, processes, 1))  # some processes are slower as a whole
    times = levels * texts * draw.lognormal(0, 0.05, (2, *texts.shape))
    intervals = [paired_ratio(1.3 * samples, baseline) for samples, baseline in zip(*times, strict=True)]
    covers = [each.low is not None and each.high is not None and each.low <= 1.3 <= each.high for each in intervals]
    assert 0.93 <= np.mean(covers) <= 0.97


def test_minimum_detectable_effect_is_significant_in_most_trials() -> None:
    def trial(factor: float, seed: int) -> SignificanceTest:
        return compare_times(_processes(factor, 2 * seed, between=0.03), _processes(1, 2 * seed + 1, between=0.03))

    smallest = float(np.mean([trial(1, seed).min_detectable_effect or 0 for seed in range(30)]))
    significant = [trial(1 + smallest, seed).is_significant for seed in range(100, 160)]
    assert sum(map(bool, significant)) >= 0.75 * len(significant)  # 90 % expected


def test_scatter_between_processes_widens_the_interval() -> None:
    steady, unsteady = (
        paired_ratio(_processes(1, 2, between=between), _processes(1, 3, between=between)) for between in (0.01, 0.1)
    )
    assert (unsteady.high or 0) - (unsteady.low or 0) > 3 * ((steady.high or 0) - (steady.low or 0)) > 0


def test_noise_that_would_hide_five_percent_is_reported() -> None:
    assert compare_times(_processes(1, 2, between=0.2), _processes(1, 3, between=0.2)).is_noisy
    assert not compare_times(_processes(1, 2), _processes(1, 3)).is_noisy


def test_fewer_processes_than_the_test_needs_have_no_p_value() -> None:
    few = MIN_FOR_TEST - 1
    test = compare_times(_processes(2, 1, few), _processes(1, 2, few))
    assert test.is_significant is None
    assert test.p_value is None
    enough = compare_times(_processes(2, 1, MIN_FOR_TEST), _processes(1, 2, MIN_FOR_TEST))
    assert enough.is_significant is True


def test_subject_does_not_differ_from_itself() -> None:
    times = _processes(1, 1)
    assert compare_times(times, times).is_significant is False


@pytest.mark.parametrize("processes", [1, 2])
def test_fewer_than_three_processes_have_a_ratio_but_no_interval(processes: int) -> None:
    test = compare_times(_processes(1.5, 1, processes), _processes(1, 2, processes))
    assert test.ratio.value == pytest.approx(1.5, rel=0.1)
    assert (test.ratio.low, test.ratio.high, test.is_significant, test.min_detectable_effect) == (
        None,
        None,
        None,
        None,
    )
    assert "at least 3" in (test.ratio.reason or "")
