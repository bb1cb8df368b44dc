from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from edgeembed_bench import BenchmarkReport, BenchmarkSettings, NullMeter, Reading, Subject, benchmark, runner
from edgeembed_runtime.errors import CheckError, InputError

TEXTS = ["read a file", "sort a list", "open a socket and wait"]
QUICK = BenchmarkSettings(runs=12, processes=2, warmup=3, block=4, settle_ms=0, batches=2, sweep_runs=0)
NOTHING = NullMeter("no meter in this test")

Stub = Callable[..., Subject]


class _TenWatts:
    """A meter that sees 10 W of package, idle or not."""

    source = "ten watts"
    min_window_s = 0.02

    def begin(self) -> None:
        """Open a window."""

    def end(self) -> Reading:
        """Close it."""
        return Reading(0.2, 0.02, {"package": 0.2})


def _report(stub: Stub, *names: str, settings: BenchmarkSettings = QUICK, **options: Any) -> BenchmarkReport:
    return benchmark([stub(name) for name in names], TEXTS, settings, meter=options.pop("meter", NOTHING), **options)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchmarkReport]:
    """Three subjects that are alike, the last of them the baseline, measured once for many tests."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("alike")
        (folder / "alike.py").write_text(
            "def embed(texts):\n    return [[1.0, 2.0] for _ in texts]\n", encoding="utf-8"
        )
        patch.setenv("PYTHONPATH", str(folder))
        subjects = [Subject(name, "function", "alike:embed") for name in "bac"]
        yield benchmark(subjects, TEXTS, QUICK, texts_from="three lines", baseline="c", meter=NOTHING)


def test_all_samples_are_kept_by_process_and_warmup_is_separate(report: BenchmarkReport) -> None:
    for name in "ab":
        assert [len(run.latency_ms) for run in report[name].processes] == [6, 6]
        assert [len(run.warmup_ms) for run in report[name].processes] == [3 + 2] * 2  # and the first of each turn
        assert [len(run.batches_ms) for run in report[name].processes] == [1, 1]


def test_each_process_is_fresh_and_the_first_start_is_discarded(report: BenchmarkReport) -> None:
    result = report["a"]
    starts = [run.start for run in result.processes]
    assert len({start.total_ms for start in (*starts, result.discarded_start)}) == 3
    assert result.start_ms.median == pytest.approx(np.median([start.total_ms for start in starts]))


def test_runs_are_rounded_up_to_a_multiple_of_the_processes(stub: Stub) -> None:
    report = _report(stub, "a", settings=replace(QUICK, runs=11))
    assert report.settings.runs == len(report["a"].latency_ms) == 12


def test_progress_is_a_line_from_time_to_time_where_there_is_no_terminal(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("edgeembed_bench.benchmarking._LINE_INTERVAL_S", 0)
    _report(stub, "a")
    shares = [int(line.split()[1]) for line in capsys.readouterr().err.splitlines() if line.startswith("measuring:")]
    assert shares == sorted(shares)
    assert shares[-1] == 100


def test_slow_subject_is_slower_in_latency_throughput_and_cpu_time(stub: Stub) -> None:
    report = benchmark([stub("fast"), stub("slow", "slow")], TEXTS, replace(QUICK, processes=3), meter=NOTHING)
    assert report["slow"].latency.q1 >= 2
    assert (report.latency_ratio("slow").low or 0) > 1
    assert (report.sentences_per_s("slow") or 0) < 32 / 0.002
    assert report["slow"].cpu_ms > report["fast"].cpu_ms


def test_ratio_is_against_the_named_baseline(report: BenchmarkReport) -> None:
    assert report.latency_ratio("c").value == 1.0
    times = [[np.array(run.latency_ms) for run in report[name].processes] for name in "ac"]
    ratios = [np.exp(np.median(np.log(ours) - np.log(baseline))) for ours, baseline in zip(*times, strict=True)]
    assert report.latency_ratio("a").value == pytest.approx(np.prod(ratios) ** (1 / len(ratios)))
    assert report.latency_ratio("a").low is None  # two processes


def test_few_processes_have_no_significance_test(report: BenchmarkReport) -> None:
    assert report.compare_latency("b").is_significant is None


def test_unknown_subject_is_an_input_error_that_lists_the_known_ones(report: BenchmarkReport) -> None:
    with pytest.raises(InputError, match="no subject 'd' in the report; expected one of: b, a, c"):
        report.compare_latency("d")


def test_subjects_stay_in_the_order_given(report: BenchmarkReport) -> None:
    assert [result.name for result in report] == ["b", "a", "c"]


def test_energy_is_in_millijoules_per_inference_and_above_idle(stub: Stub) -> None:
    energy = _report(stub, "a", meter=_TenWatts())["a"].energy
    assert len(energy.windows) == QUICK.processes
    assert energy.mj_per_inference is not None
    assert energy.mj_above_idle is not None
    assert energy.mj_above_idle.median == pytest.approx(0)
    assert energy.mj_per_inference.q3 == pytest.approx(
        max(200 / window.inferences for window in energy.windows), rel=0.5
    )
    assert energy.source == "ten watts"


def test_energy_without_a_meter_is_none_with_the_reason(report: BenchmarkReport) -> None:
    result = report["a"]
    assert result.energy.mj_per_inference is None
    assert result.energy.reason == "no meter in this test"
    assert result.cpu_ms > 0


def test_meter_with_long_windows_measures_few_processes(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_SHORT_WINDOW_S", 0.01)
    report = _report(stub, "a", settings=replace(QUICK, processes=4), meter=_TenWatts())
    assert len(report["a"].energy.windows) == 3


def test_overhead_of_the_benchmark_is_measured(report: BenchmarkReport) -> None:
    result = report["a"]
    assert all(run.timer_ms > 0 for run in result.processes)
    assert result.timer_share > 0


def test_settings_and_machine_are_recorded(report: BenchmarkReport) -> None:
    assert report.texts.source == "three lines"
    assert len(report.texts.sha256) == 64
    assert report.settings.threads == 1
    assert report.machine.cpu
    assert report.machine.ram_bytes > 1e8
    assert 1 <= report.machine.available_cores <= report.machine.cores
    assert report.created_utc.endswith("+00:00")


@pytest.mark.parametrize(
    ("names", "texts", "settings", "options", "message"),
    [
        ([], TEXTS, {}, {}, "no subjects"),
        (["a", "a"], TEXTS, {}, {}, "share a name"),
        (["a"], [], {}, {}, "texts: 0"),
        (["a"], TEXTS, {"runs": 0}, {}, "runs: 0"),
        (["a"], TEXTS, {"threads": 0}, {}, "threads: 0"),
        (["a"], TEXTS, {"threads": 4096}, {}, "4096 threads requested"),
        (["a"], TEXTS, {"lengths": (0, 4)}, {}, "lengths: 0"),
        (["a"], TEXTS, {}, {"baseline": "z"}, "baseline z"),
    ],
)
def test_invalid_arguments_are_input_errors(
    stub: Stub, names: list[str], texts: list[str], settings: Any, options: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        benchmark([stub(name) for name in names], texts, replace(QUICK, **settings), **options)


@pytest.mark.parametrize(
    ("function", "text", "message"),
    [
        ("embed", "nan", "the first embedding is not finite"),
        ("one_for_all", "a", "expected one vector per text"),
    ],
)
def test_invalid_embeddings_are_check_errors(stub: Stub, function: str, text: str, message: str) -> None:
    with pytest.raises(CheckError, match=message):
        benchmark([stub("a", function)], [text, "b"], QUICK, meter=NOTHING)


def test_subject_that_raises_is_named(stub: Stub) -> None:
    with pytest.raises(CheckError, match=r"^a ended with exit code 1: RuntimeError: the model fell over$"):
        benchmark([stub("a")], ["fine", "crash", "fine"], QUICK, meter=NOTHING)
