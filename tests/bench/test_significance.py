import numpy as np
import pytest
from edgeembed_bench.stats import MIN_FOR_TEST, SignificanceTest, compare_times, median_ratio


def _processes(factor: float, seed: int, processes: int = 10, between: float = 0.01) -> list[list[float]]:
    """Times of 100 texts of unlike lengths in each process; each process is a little slower or faster as a whole."""
    draw = np.random.default_rng(seed)
    texts = np.random.default_rng(1).lognormal(0, 0.4, (processes, 100))
    levels = draw.lognormal(0, between, (processes, 1))
    times: list[list[float]] = (factor * levels * texts * draw.lognormal(0, 0.05, texts.shape)).tolist()
    return times


def test_equal_subjects_hardly_ever_differ_significantly() -> None:
    found = [compare_times(_processes(1, 2 * seed), _processes(1, 2 * seed + 1)).is_significant for seed in range(25)]
    assert sum(map(bool, found)) <= 1  # at a level of 1 %


def test_five_percent_is_nearly_always_significant() -> None:
    found = [
        compare_times(_processes(1.05, 2 * seed), _processes(1, 2 * seed + 1)).is_significant for seed in range(20)
    ]
    assert sum(map(bool, found)) >= 19


def test_the_interval_of_a_simulated_benchmark_covers_the_true_ratio_in_93_to_97_percent() -> None:
    draw = np.random.default_rng(4)
    trials, processes, calls = 4000, 10, 25
    texts = draw.lognormal(0, 0.4, (trials, processes, calls))  # the same for both subjects
    levels = draw.lognormal(0, 0.03, (2, trials, processes, 1))  # some processes are slower as a whole
    times = levels * texts * draw.lognormal(0, 0.05, (2, *texts.shape))
    found = [median_ratio(1.3 * samples, baseline) for samples, baseline in zip(*times, strict=True)]
    covers = [each.low is not None and each.high is not None and each.low <= 1.3 <= each.high for each in found]
    assert 0.93 <= np.mean(covers) <= 0.97


def test_minimum_detectable_effect_is_significant_in_most_trials() -> None:
    def trial(factor: float, seed: int) -> SignificanceTest:
        return compare_times(_processes(factor, 2 * seed, between=0.03), _processes(1, 2 * seed + 1, between=0.03))

    smallest = float(np.mean([trial(1, seed).min_detectable_effect or 0 for seed in range(30)]))
    found = [trial(1 + smallest, seed).is_significant for seed in range(100, 160)]
    assert sum(map(bool, found)) >= 0.75 * len(found)  # 90 % expected


def test_scatter_between_processes_widens_the_interval() -> None:
    steady, unsteady = (
        median_ratio(_processes(1, 2, between=between), _processes(1, 3, between=between)) for between in (0.01, 0.1)
    )
    assert (unsteady.high or 0) - (unsteady.low or 0) > 3 * ((steady.high or 0) - (steady.low or 0)) > 0


def test_noise_that_would_hide_five_percent_is_reported() -> None:
    assert compare_times(_processes(1, 2, between=0.2), _processes(1, 3, between=0.2)).is_noisy
    assert not compare_times(_processes(1, 2), _processes(1, 3)).is_noisy


def test_fewer_processes_than_the_test_needs_have_no_p_value() -> None:
    few = MIN_FOR_TEST - 1
    found = compare_times(_processes(2, 1, few), _processes(1, 2, few))
    assert found.is_significant is None
    assert found.p_value is None
    enough = compare_times(_processes(2, 1, MIN_FOR_TEST), _processes(1, 2, MIN_FOR_TEST))
    assert enough.is_significant is True


def test_subject_does_not_differ_from_itself() -> None:
    times = _processes(1, 1)
    assert compare_times(times, times).is_significant is False


@pytest.mark.parametrize("processes", [1, 2])
def test_fewer_than_three_processes_have_a_ratio_but_no_interval(processes: int) -> None:
    found = compare_times(_processes(1.5, 1, processes), _processes(1, 2, processes))
    assert found.ratio.value == pytest.approx(1.5, rel=0.1)
    assert (found.ratio.low, found.ratio.high, found.is_significant, found.min_detectable_effect) == (
        None,
        None,
        None,
        None,
    )
    assert "at least 3" in (found.ratio.reason or "")
