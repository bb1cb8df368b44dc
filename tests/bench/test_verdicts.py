import numpy as np
import pytest
from edgeembed_bench.verdicts import FEWEST_PROCESSES, clustered_ratio, verdict


def _processes(factor: float, seed: int, processes: int = 10, between: float = 0.01) -> list[list[float]]:
    """Times of 100 texts of unlike lengths in each process; each process is a little slower or faster as a whole."""
    draw = np.random.default_rng(seed)
    texts = np.random.default_rng(1).lognormal(0, 0.4, (processes, 100))
    levels = draw.lognormal(0, between, (processes, 1))
    times: list[list[float]] = (factor * levels * texts * draw.lognormal(0, 0.05, texts.shape)).tolist()
    return times


def test_alike_subjects_are_told_apart_in_hardly_any_trial() -> None:
    found = [verdict(_processes(1, 2 * seed), _processes(1, 2 * seed + 1)).differs for seed in range(25)]
    assert sum(map(bool, found)) <= 1  # at a level of 1 %


def test_five_percent_is_told_apart_in_nearly_every_trial() -> None:
    found = [verdict(_processes(1.05, 2 * seed), _processes(1, 2 * seed + 1)).differs for seed in range(20)]
    assert sum(map(bool, found)) >= 19


def test_the_interval_holds_the_true_ratio_nearly_always() -> None:
    ratios = [clustered_ratio(_processes(1.3, 2 * seed), _processes(1, 2 * seed + 1)) for seed in range(20)]
    assert sum(ratio.low <= 1.3 <= ratio.high for ratio in ratios) >= 17


def test_processes_that_scatter_widen_the_interval() -> None:
    steady, unsteady = (
        clustered_ratio(_processes(1, 2, between=between), _processes(1, 3, between=between)) for between in (0.01, 0.1)
    )
    assert unsteady.high - unsteady.low > 3 * (steady.high - steady.low)


def test_noise_that_would_hide_five_percent_is_told() -> None:
    assert verdict(_processes(1, 2, between=0.2), _processes(1, 3, between=0.2)).is_noisy
    assert not verdict(_processes(1, 2), _processes(1, 3)).is_noisy


def test_too_few_processes_are_not_tested() -> None:
    few = FEWEST_PROCESSES - 1
    found = verdict(_processes(2, 1, few), _processes(1, 2, few))
    assert found.differs is None
    assert found.p_value is None
    enough = verdict(_processes(2, 1, FEWEST_PROCESSES), _processes(1, 2, FEWEST_PROCESSES))
    assert enough.differs is True


def test_a_subject_beside_itself_does_not_differ() -> None:
    times = _processes(1, 1)
    assert verdict(times, times).differs is False


def test_one_process_has_an_interval_over_its_texts() -> None:
    ratio = clustered_ratio(_processes(1.5, 1, 1), _processes(1, 2, 1))
    assert ratio.low < ratio.value < ratio.high
    assert ratio.value == pytest.approx(1.5, rel=0.1)
