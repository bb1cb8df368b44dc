"""Real runs: no significant difference where there is none, and one of 5 % where there is one."""

from pathlib import Path

import pytest
from edgeembed_bench import BenchmarkSettings, NullMeter, SignificanceTest, Subject, benchmark
from edgeembed_runtime import Bundle
from edgeembed_runtime.builtin_models import builtin_bundle

from experiments.runtime.random_students import write_random_student

NO_METER = NullMeter("not measured in this test")
QUIET = 0.035  # minimum detectable effect of a run on a quiet machine
TEXTS = [
    f"The {word} that stood by the river was sold to a farmer in {year}."
    for word in ("mill", "old barn")
    for year in range(1800, 2000)
]
_FUNCTIONS = """
import time
from edgeembed_runtime import Encoder

encoder = Encoder()

def as_it_is(texts):
    return encoder.encode(texts)

def slowed(texts):
    begun = time.perf_counter()
    vectors = encoder.encode(texts)
    end = begun + 1.05 * (time.perf_counter() - begun)
    while time.perf_counter() < end:
        pass
    return vectors
"""


def _test(first: Subject, second: Subject, seed: int) -> SignificanceTest:
    # Default settings, without measurements that the test does not use.
    settings = BenchmarkSettings(batches=0, sweep_runs=0, part_runs=0, seed=1000 * seed)
    return benchmark([first, second], TEXTS, settings, meter=NO_METER).compare_latency(second.name)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_bundle_differs_from_itself_in_at_most_one_of_six_runs() -> None:
    differs = [_test(Subject("a", "bundle"), Subject("b", "bundle"), seed).is_significant for seed in range(6)]
    assert None not in differs
    assert sum(map(bool, differs)) <= 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_subject_slowed_by_five_percent_differs_in_two_of_three_quiet_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "delayed.py").write_text(_FUNCTIONS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    plain, slowed = (Subject(name, "function", f"delayed:{name}") for name in ("as_it_is", "slowed"))
    quiet: list[SignificanceTest] = []
    for seed in range(6):
        test = _test(plain, slowed, seed)
        quiet += [test] if (test.min_detectable_effect or 1) < QUIET else []
        if len(quiet) == 3:
            break
    else:
        pytest.skip(f"the machine is too noisy: {len(quiet)} of 6 runs were quiet")
    assert sum(test.is_significant is True for test in quiet) >= 2


@pytest.mark.slow
def test_overhead_of_the_benchmark_is_below_two_percent_of_a_short_subject(tmp_path: Path) -> None:
    write_random_student(tmp_path / "cbow", "cbow", Bundle.open(builtin_bundle()))  # tens of microseconds per text
    settings = BenchmarkSettings(runs=300, processes=3, batches=0, sweep_runs=0)
    report = benchmark([Subject("cbow", "bundle", str(tmp_path / "cbow"))], TEXTS, settings, meter=NO_METER)
    assert 0 < report["cbow"].timer_share < 0.02
