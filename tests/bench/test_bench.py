import json
import os
import time
from typing import Any

import numpy as np
import pytest
from edgeembed_bench import (
    BenchReport,
    Reading,
    Subject,
    bench,
    from_function,
    measurement,
    report_table,
    this_machine,
)
from edgeembed_runtime.errors import CheckError, InputError
from rich.console import Console


def _subject(name: str, value: float = 1.0, dim: int = 8, **facts: Any) -> Subject:
    def encode(texts: Any) -> Any:
        shape = (dim,) if isinstance(texts, str) else (len(texts), dim)
        return np.full(shape, value, np.float32)

    return from_function(name, encode, **{"size_bytes": 2_500_000, "parameters": 1_250_000, **facts})


TEXTS = ["read a file", "sort a list", "open a socket and wait"]


class _ReplayMeter:
    """Gives one recorded reading after another."""

    source = "recorded"

    def __init__(self, *readings: Reading) -> None:
        self.readings = list(readings)
        self.open = False

    def begin(self) -> None:
        assert not self.open
        self.open = True

    def end(self) -> Reading:
        self.open = False
        return self.readings.pop(0)


@pytest.fixture(autouse=True)
def short_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "WINDOW_S", 0.01)


def _shown(report: BenchReport) -> str:
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
    with console.file:
        console.print(report_table(report))
    return console.export_text()


def test_every_raw_sample_is_kept_and_warmups_are_apart() -> None:
    report = bench([_subject("a"), _subject("b")], TEXTS, runs=45, warmup=6)
    for name in "ab":
        assert len(report[name].latency.timed_ms) == 45
        assert len(report[name].latency.warmup_ms) == 6 + 3
        assert len(report[name].batches.timed_ms) == measurement.BATCHES


def test_batches_hold_32_texts_and_singles_are_single() -> None:
    seen = set()

    def encode(texts: Any) -> Any:
        seen.add(1 if isinstance(texts, str) else len(texts))
        return np.ones((8,) if isinstance(texts, str) else (len(texts), 8), np.float32)

    bench([from_function("a", encode, size_bytes=1)], TEXTS, runs=5, warmup=1)
    assert seen == {1, 2, 32}  # 2: the check of shapes before the run


def test_ratio_is_against_the_named_baseline() -> None:
    report = bench([_subject("a"), _subject("b")], TEXTS, runs=5, warmup=1, baseline="b")
    assert report.latency_ratio("b") == 1.0
    assert report.latency_ratio("a") == report["a"].median_ms / report["b"].median_ms


def test_json_holds_samples_statistics_machine_and_schema_version() -> None:
    found = json.loads(bench([_subject("a")], TEXTS, runs=8, warmup=1).to_json())
    subject = found["subjects"][0]
    assert found["schema_version"] == 1
    assert found["created_utc"].endswith("+00:00")
    assert found["machine"]["versions"]["numpy"] == np.__version__
    assert subject["median_ms"] == pytest.approx(np.median(subject["latency"]["timed_ms"]))
    assert subject["q1_ms"] <= subject["median_ms"] <= subject["q3_ms"] <= subject["p99_ms"]
    assert subject["energy"]["mj_per_inference"] is None or subject["energy"]["source"]


def test_energy_is_millijoules_an_inference_of_the_window() -> None:
    report = bench([_subject("a")], TEXTS, runs=5, warmup=1, meter=_ReplayMeter(Reading(2.0)))
    energy = report["a"].energy
    assert energy.mj_per_inference == pytest.approx(2000 / energy.inferences)
    assert energy.window_s is not None
    assert energy.window_s >= measurement.WINDOW_S
    assert energy.source == "recorded"


def test_a_window_that_failed_is_not_measured_for_that_subject_alone() -> None:
    meter = _ReplayMeter(Reading(2.0), Reading(None, "wrapped around"))
    report = bench([_subject("a"), _subject("b")], TEXTS, runs=5, warmup=1, meter=meter)
    assert report["a"].energy.mj_per_inference is not None
    assert report["b"].energy.mj_per_inference is None
    assert "energy not measured for b: wrapped around" in _shown(report)


def test_table_shows_costs_quality_and_why_energy_is_missing() -> None:
    report = bench([_subject("teacher"), _subject("student")], TEXTS, runs=5, warmup=1)
    shown = _shown(report.with_quality("kept %", {"student": 87.25}))
    assert "2.5" in shown
    assert "1.25M" in shown
    assert "87.2" in shown
    if report["student"].energy.reason:
        assert report["student"].energy.reason.split("(")[0].strip()[:20] in shown


def test_threads_reach_the_tokenizer_and_the_environment_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    during = []

    def encode(texts: Any) -> Any:
        during.append(os.environ["TOKENIZERS_PARALLELISM"])
        return np.ones((8,) if isinstance(texts, str) else (len(texts), 8), np.float32)

    bench([from_function("a", encode, size_bytes=1)], TEXTS, runs=2, warmup=1)
    assert set(during) == {"false"}
    assert os.environ["TOKENIZERS_PARALLELISM"] == "true"


@pytest.mark.parametrize(
    ("subjects", "texts", "options", "message"),
    [
        ([], TEXTS, {}, "no subjects"),
        ([_subject("a"), _subject("a")], TEXTS, {}, "share a name"),
        ([_subject("a")], [], {}, "texts: 0"),
        ([_subject("a")], TEXTS, {"runs": 0}, "runs: 0"),
        ([_subject("a")], TEXTS, {"threads": 0}, "threads: 0"),
        ([_subject("a")], TEXTS, {"baseline": "z"}, "baseline z"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_line(subjects: Any, texts: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bench(subjects, texts, **options)


def test_vectors_that_are_not_finite_are_refused() -> None:
    with pytest.raises(CheckError, match="not finite"):
        bench([_subject("a", value=np.nan)], TEXTS, runs=2)


def test_vectors_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(CheckError, match="expected \\(dim,\\) and \\(2, dim\\)"):
        bench([from_function("a", lambda _: np.ones((1, 8)), size_bytes=1)], TEXTS, runs=2)


def test_a_delay_shows_in_latency_and_throughput() -> None:
    def slow(texts: Any) -> Any:
        time.sleep(0.002)
        return np.ones((8,) if isinstance(texts, str) else (len(texts), 8), np.float32)

    report = bench([_subject("fast"), from_function("slow", slow, size_bytes=1)], TEXTS, runs=10, warmup=1)
    assert report["slow"].latency.quantile_ms(0.0) >= 2
    assert report["slow"].sentences_per_s <= 16_000
    assert report.latency_ratio("slow") > 1


def test_the_machine_is_described() -> None:
    machine = this_machine()
    assert machine.cpu
    assert 1 <= machine.cores_allowed <= machine.cores
    assert machine.versions["numpy"] == np.__version__


def test_a_package_that_is_absent_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgeembed_bench.machine.PACKAGES", ("no-such-package-here",))
    assert this_machine().versions == {"no-such-package-here": None}
