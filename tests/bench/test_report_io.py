import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from edgeembed_bench import BenchmarkReport, compare_reports, read_report
from edgeembed_bench.render import terminal_comparison, terminal_report
from edgeembed_runtime.errors import InputError
from rich.console import Console

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


def _run(content: Any) -> Any:
    return content["subjects"][1]["processes"][0]


_DAMAGES: list[tuple[Callable[[Any], object], str]] = [
    (lambda content: _run(content)["sweep_ms"].pop(), "the latencies by length of student are not"),
    (lambda content: _run(content)["sweep_ms"].append([1.0]), "the latencies by length of student are not"),
    (lambda content: _run(content)["sweep_ms"][0].clear(), "the latencies by length of student are not"),
    (lambda content: _run(content)["sweep_ms"][0].append(0.0), "the latencies by length of student are not"),
    (lambda content: content["settings"]["lengths"].append(512), "the latencies by length of teacher are not"),
    (lambda content: content["settings"].update(batch_size=0), "batch_size: 0 given"),
    (lambda content: content.update(created_utc="yesterday"), "yesterday"),
    (lambda content: content["subjects"][1]["subject"].update(name="\x1b]0;owned"), r"\\x1b\]0;owned.* unprintable"),
    (lambda content: content["subjects"][1]["subject"].update(name=""), "expected a printable name"),
    (lambda content: content["subjects"][1]["subject"].update(name="teacher"), "share a name"),
    (lambda content: _run(content)["batches_ms"].append(0.0), "the times of batches of student are not positive"),
    (lambda content: _run(content)["parts_ms"].update(bare=[1.0]), "the parts of student differ in number"),
    (lambda content: _run(content).update(resident_bytes=-1), "the memory of student is impossible"),
    (lambda content: _run(content)["start"].update(load_ms=-1e9), "the cold starts of student are not positive"),
    (lambda content: _run(content).update(cpu_s=float("nan")), "is damaged"),
    (lambda content: _run(content).update(timer_ms=float("inf")), "is damaged"),
    (lambda content: content["machine"].update(ram_bytes=10**400), "is damaged"),
    (lambda content: content["subjects"][1]["size"]["files"][0].update(size_bytes=-1), "the sizes of the files of"),
    (lambda content: content["subjects"][1]["quality"].update(task=1e300), "the scores of student are not between"),
    (lambda content: content["subjects"][1]["energy"]["windows"][0]["reading"].update(energy_j=1e999), "is damaged"),
    (
        lambda content: [run["latency_ms"].pop() for run in content["subjects"][1]["processes"]],
        "its subjects differ in the number of latencies",
    ),
]


@pytest.mark.parametrize(("damage", "message"), _DAMAGES)
def test_report_that_could_not_be_shown_is_damaged(
    make_report: MakeReport, damage: Callable[[Any], object], message: str, tmp_path: Path
) -> None:
    content = json.loads(make_report(2).to_json())
    damage(content)
    (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=message) as error:
        read_report(tmp_path / "a.json")
    assert str(error.value).isprintable()
    assert "a.json is damaged: " in str(error.value)


def test_escape_sequences_of_a_report_do_not_reach_the_terminal(make_report: MakeReport, tmp_path: Path) -> None:
    attack = "\x1b]0;owned\x07\x9b31m\u202e"
    content = json.loads(make_report(2, bare=True).to_json())
    content["machine"].update(cpu=attack, system=attack, governor=attack, versions={attack: attack})
    content["texts"].update(source=attack)
    content["left_out"] = {attack: attack}
    content["subjects"][0]["info"]["versions"] = {attack: attack}
    for subject in content["subjects"]:
        subject["subject"]["note"] = subject["energy"]["reason"] = attack
        subject["quality"] = {attack: 50.0}
    (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
    report = read_report(tmp_path / "a.json")
    before = replace(report, machine=replace(report.machine, cpu="another"))
    comparison = compare_reports(before, report, allow_unlike=True)
    for rendered in (terminal_report(report), terminal_comparison(comparison)):
        output = io.StringIO()
        Console(file=output, width=200).print(rendered)
        shown = output.getvalue()
        assert r"\x1b]0;owned" in shown
        assert "".join(shown.splitlines()).isprintable()
    for text in (report.to_markdown(), comparison.to_markdown(), report.to_html()):
        assert not set(attack[0] + attack[-1]) & set(text)
    with pytest.raises(InputError, match=r"\\x1b") as error:
        compare_reports(before, report)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("content", ["[" * 100_000, "", "[1]", "{", None])
def test_unreadable_file_is_an_input_error(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.json"):
        read_report(file)
