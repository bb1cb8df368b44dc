import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from edgeembed_bench import BenchmarkReport, read_report
from edgeembed_runtime.errors import InputError

MakeReport = Callable[..., BenchmarkReport]


@pytest.mark.parametrize("bare", [True, False])
def test_report_is_unchanged_by_writing_and_reading(make_report: MakeReport, bare: bool, tmp_path: Path) -> None:
    report = make_report(3, bare=bare)
    (tmp_path / "a.json").write_text(report.to_json(), encoding="utf-8")
    assert read_report(tmp_path / "a.json") == report


def test_json_holds_version_samples_machine_and_figures_by_name(make_report: MakeReport) -> None:
    report = make_report(2)
    content = json.loads(report.to_json())
    assert content["schema_version"] == 3
    assert content["machine"]["cpu"] == report.machine.cpu
    student = report["student"]
    assert content["subjects"][1]["processes"][0]["latency_ms"] == list(student.processes[0].latency_ms)
    assert content["subjects"][1]["size"]["files"][0]["sha256"] == student.size.files[0].sha256
    derived = content["derived"]["student"]
    assert derived["q1_ms"] < derived["median_ms"] == student.latency.median < derived["q3_ms"] < derived["p99_ms"]
    assert derived["latency_ratio"]["low"] < derived["latency_ratio"]["value"] < derived["latency_ratio"]["high"]
    assert derived["is_significant"] is True
    assert derived["mj_per_inference"]["median"] > derived["mj_above_idle"]["median"]


@pytest.mark.parametrize("processes", [1, 2])
def test_interval_of_too_few_processes_is_null_with_the_reason(make_report: MakeReport, processes: int) -> None:
    derived = json.loads(make_report(2, bare=True, processes=processes).to_json())["derived"]["student"]
    ratio = derived["latency_ratio"]
    assert ratio["value"] > 0
    assert (ratio["low"], ratio["high"], derived["min_detectable_effect"]) == (None, None, None)
    assert "a confidence interval needs at least 3" in ratio["reason"]


def test_missing_measurements_are_null_and_never_zero(make_report: MakeReport) -> None:
    derived = json.loads(make_report(2, bare=True, processes=3).to_json())["derived"]["student"]
    for name in ("mj_per_inference", "mj_above_idle", "energy_source", "sentences_per_s", "mean_quality"):
        assert derived[name] is None
    assert "RAPL" in derived["energy_reason"]
    assert derived["is_significant"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 2}, r"schema version 2; expected 3: run the benchmark again$"),
        ({"kind": "edgeembed paper table"}, "report of another kind, edgeembed paper table"),
        ({"baseline": "nobody"}, "nobody is not among its subjects"),
        ({"subjects": [{}]}, "is damaged"),
        ({"machine": None}, "is damaged"),
    ],
)
def test_invalid_report_is_an_input_error_of_one_line(
    make_report: MakeReport, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(json.loads(make_report(2).to_json()) | change), encoding="utf-8")
    with pytest.raises(InputError, match=message) as error:
        read_report(file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("times", [[], [-1.0] * 120, [0.0] * 120, [1.0]])
def test_report_with_impossible_times_raises_input_error(
    make_report: MakeReport, times: list[float], tmp_path: Path
) -> None:
    content = json.loads(make_report(2).to_json())
    content["subjects"][1]["processes"][0]["latency_ms"] = times
    (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(
        InputError, match="the latencies of student are not positive, or their number differs between processes"
    ):
        read_report(tmp_path / "a.json")


@pytest.mark.parametrize("content", ["", "[1]", "{", None])
def test_unreadable_file_is_an_input_error(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.json"):
        read_report(file)
