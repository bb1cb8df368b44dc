"""Cold start, memory and call overhead beside a floor, and their limits."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from edgeembed_bench import (
    BenchmarkReport,
    BenchmarkSettings,
    Budget,
    FloorResult,
    LimitCheck,
    NullMeter,
    Start,
    Subject,
    SubjectResult,
    benchmark,
    read_report,
)
from edgeembed_bench.render import terminal_report
from edgeembed_runtime.errors import InputError
from rich.console import Console

MakeReport = Callable[..., BenchmarkReport]

FLOOR = Subject("floor", "nothing", modules=("json",), note="imports json")
BUDGET = Budget(max_start_ratio=1.5, max_memory_ratio=1.5, max_overhead_us=15)
_LOGGED = """
import os

def encode(texts):
    with open(os.environ["CALLS"], "a") as calls:
        calls.writelines(f"{os.getpid()} {text}\\n" for text in texts)
    return [[1.0, 2.0] for _ in texts]
"""


def _start(total_ms: float, resident_mb: int) -> Start:
    return Start(1.0, 1.0, 1.0, total_ms - 3.0, resident_mb * 10**6, resident_mb * 10**6)


def _student(result: SubjectResult, start: Start, *added_us: float) -> SubjectResult:
    """Return a result whose processes all have one start; encoding adds some microseconds in each."""
    added = added_us or (12.5,) * len(result.processes)
    runs = (
        replace(run, start=start, parts_ms={"encode": (0.1 + us / 1e3,) * 5, "bare": (0.1,) * 5})
        for run, us in zip(result.processes, added, strict=True)
    )
    return replace(result, processes=tuple(runs))


@pytest.fixture
def report(make_report: MakeReport) -> BenchmarkReport:
    """A report with a floor of 100 ms and 40 MB, and a student of 140 ms and 50 MB that adds 12.5 us per call."""
    made = make_report(2, processes=3)
    teacher, student = made.subjects
    floor = FloorResult(FLOOR, _start(200, 40), (_start(100, 40),) * 3)
    student = _student(student, _start(140, 50))
    return replace(made, subjects=(teacher, student), floor=floor).with_budget(BUDGET, ["student"])


def _changed(report: BenchmarkReport, student: SubjectResult) -> BenchmarkReport:
    return replace(report, subjects=(report.subjects[0], student))


def _kept(report: BenchmarkReport) -> list[bool]:
    return [check.is_kept for check in report.limit_checks()]


def test_ratios_to_the_floor_are_over_processes(report: BenchmarkReport) -> None:
    start, memory = report.start_ratio("student"), report.memory_ratio("student")
    assert start is not None
    assert memory is not None
    assert start.value == pytest.approx(1.4)
    assert memory.value == pytest.approx(1.25)
    assert start.reason is None


def test_call_overhead_is_the_mean_over_processes_of_the_median_difference(report: BenchmarkReport) -> None:
    student = _student(report["student"], _start(140, 50), 8, 14, 20)
    assert student.call_overhead_us is not None
    assert student.call_overhead_us.value == pytest.approx(14)
    low, high = student.call_overhead_us.low, student.call_overhead_us.high
    assert (low or 0) < 15 < (high or 0)


def test_without_a_floor_or_memory_or_parts_there_is_no_ratio_and_no_overhead(
    report: BenchmarkReport, bare_report: BenchmarkReport
) -> None:
    assert replace(report, floor=None).start_ratio("student") is None
    assert replace(report, floor=None).memory_ratio("student") is None
    unknown = replace(_start(140, 50), resident_bytes=None)
    assert _changed(report, _student(report["student"], unknown)).memory_ratio("student") is None
    assert bare_report["student"].call_overhead_us is None


def test_limits_are_compared_with_measured_values(report: BenchmarkReport) -> None:
    checks = report.limit_checks()
    assert [(check.quantity, check.measured and round(check.measured.value, 2), check.limit) for check in checks] == [
        ("cold start (x floor)", 1.4, 1.5),
        ("resident memory (x floor)", 1.25, 1.5),
        ("overhead of a call (us)", 12.5, 15),
    ]
    assert [check.result for check in checks] == ["kept"] * 3
    assert all(check.is_kept and check.is_certain for check in checks)


def test_exceeded_limits_are_failures_of_one_line(report: BenchmarkReport) -> None:
    slow = _changed(report, _student(report["student"], _start(151, 61), 15.5, 15.5, 15.5))
    assert _kept(slow) == [False] * 3
    assert all(check.is_certain for check in slow.limit_checks())
    failures = [check.failure for check in slow.limit_checks()]
    assert failures[0] == "student: cold start (x floor) 1.510 (95 %: 1.510 to 1.510), more than 1.5"


def test_limit_within_the_interval_is_uncertain(report: BenchmarkReport) -> None:
    noisy = _changed(report, _student(report["student"], _start(140, 50), 8, 14, 20))
    *_, check = noisy.limit_checks()
    assert (check.is_kept, check.is_certain) == (True, False)


def test_value_above_a_limit_within_the_interval_is_unclear_and_no_failure(report: BenchmarkReport) -> None:
    noisy = _changed(report, _student(report["student"], _start(140, 50), 8, 16, 24))
    *_, check = noisy.limit_checks()
    assert check.measured is not None
    assert check.measured.value > check.limit
    assert check.result == "unclear"
    assert (check.is_kept, check.is_certain, check.is_exceeded, check.failure) == (False, False, False, None)
    assert "unclear" in _shown(noisy)
    assert " NO" not in _shown(noisy)
    assert json.loads(noisy.to_json())["limits"][-1]["is_exceeded"] is False


def test_value_above_a_limit_without_an_interval_is_a_failure(make_report: MakeReport) -> None:
    made = make_report(2, processes=1)
    floor = FloorResult(FLOOR, _start(200, 40), (_start(100, 40),))
    slow = _changed(replace(made, floor=floor), _student(made["student"], _start(160, 50)))
    check, *_ = slow.with_budget(BUDGET, ["student"]).limit_checks()
    assert check.is_exceeded
    assert "cold start (x floor) 1.600 (no 95 % interval: 1 process was measured" in (check.failure or "")


def test_limits_of_one_process_are_uncertain(make_report: MakeReport) -> None:
    made = make_report(2, processes=1)
    teacher, student = made.subjects
    floor = FloorResult(FLOOR, _start(200, 40), (_start(100, 40),))
    once = replace(made, subjects=(teacher, _student(student, _start(140, 50))), floor=floor)
    once = once.with_budget(BUDGET, ["student"])
    assert not any(check.is_certain for check in once.limit_checks())
    assert "at least 3" in json.loads(once.to_json())["limits"][0]["measured"]["reason"]
    assert "unclear" in _shown(once)


def test_limits_on_memory_and_parts_that_were_not_measured_are_shown_with_the_reason(report: BenchmarkReport) -> None:
    student = _student(report["student"], replace(_start(140, 50), resident_bytes=None, peak_bytes=None))
    runs = tuple(replace(run, parts_ms={}) for run in student.processes)
    report = _changed(report, replace(student, processes=runs))
    start, memory, overhead = report.limit_checks()
    assert [check.result for check in (start, memory, overhead)] == ["kept", "not measured", "not measured"]
    assert memory.reason == "this system does not report resident memory"
    assert overhead.reason == "its tokenization and model cannot be timed apart"
    assert [limit["result"] for limit in json.loads(report.to_json())["limits"]] == [
        "kept",
        "not measured",
        "not measured",
    ]
    for shown in (_shown(report), report.to_markdown(), report.to_html()):
        text = " ".join(shown.split())
        assert "limit on resident memory (x floor) of student: this system does not report resident memory" in text


@pytest.mark.parametrize(("value", "kept"), [(2.0, True), (3.0, True), (3.1, False)])
def test_limit_itself_is_allowed(value: float, kept: bool) -> None:
    from edgeembed_bench import Interval

    check = LimitCheck("a", "size (MB)", Interval(value, None, None), 3.0, is_exact=True)
    assert (check.is_kept, check.is_certain) == (kept, True)


def test_report_with_a_floor_is_read_again_unchanged(report: BenchmarkReport, tmp_path: Path) -> None:
    report = replace(report, left_out={"peer": "it is absent"})
    (tmp_path / "a.json").write_text(report.to_json(), encoding="utf-8")
    assert read_report(tmp_path / "a.json") == report


def test_report_whose_floor_has_other_processes_is_damaged(report: BenchmarkReport, tmp_path: Path) -> None:
    content: dict[str, Any] = json.loads(report.to_json())
    content["floor"]["starts"].pop()
    (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=r"is damaged: its subjects differ in the number of processes"):
        read_report(tmp_path / "a.json")


def test_json_holds_ratios_overhead_and_limits(report: BenchmarkReport) -> None:
    content = json.loads(report.to_json())
    derived = content["derived"]["student"]
    assert derived["start_ratio"]["value"] == pytest.approx(1.4)
    assert derived["memory_ratio"]["value"] == pytest.approx(1.25)
    assert derived["call_overhead_us"]["value"] == pytest.approx(12.5)
    assert [limit["is_kept"] for limit in content["limits"]] == [True] * 3


def _shown(report: BenchmarkReport) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(terminal_report(report))
    return capture.get()


def test_all_renderers_show_floor_overhead_limits_and_left_out_subjects(report: BenchmarkReport) -> None:
    report = replace(report, left_out={"peer": "it is absent"})
    for shown in (_shown(report), report.to_markdown(), report.to_html()):
        for part in ("floor", "x floor", "1.40", "12.5", "Limits", "peer left out: it is absent", "added us"):
            assert part in shown
    assert "floor: a process that imports json" in _shown(report)


def test_exceeded_limit_is_marked_in_the_table(report: BenchmarkReport) -> None:
    assert " NO" not in _shown(report)
    assert " NO" in _shown(_changed(report, _student(report["student"], _start(151, 61))))


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which the subjects log their calls: process id and text."""
    (tmp_path / "logged.py").write_text(_LOGGED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


def _measured(processes: int = 1, runs: int = 6) -> BenchmarkReport:
    subjects = [Subject(name, "function", "logged:encode", modules=("json",)) for name in "ab"]
    settings = BenchmarkSettings(
        runs=runs, processes=processes, warmup=3, block=2, settle_ms=0, batches=0, sweep_runs=0, part_runs=0
    )
    texts = ["one", "two", "three", "four"]
    return benchmark(subjects, texts, settings, floor=FLOOR, left_out={"c": "gone"}, meter=NullMeter("no meter"))


def test_floor_is_started_in_each_round_and_encodes_nothing(calls: Path) -> None:
    report = _measured(processes=2)
    assert report.floor is not None
    assert len(report.floor.starts) == 2
    assert report.floor.discarded_start not in report.floor.starts
    assert [subject.name for subject in report] == ["a", "b"]
    assert (report.start_ratio("a"), report.left_out) != (None, {})
    assert len({line.split(" ", 1)[0] for line in calls.read_text().splitlines()}) == 2 * 3


def test_subjects_take_turns_on_the_same_texts(calls: Path) -> None:
    _measured(runs=8)
    logged = [line.split(" ", 1) for line in calls.read_text().splitlines()]
    logged = logged[2 * 3 + 2 + 2 * 3 :]  # the first starts, each with a batch of two; the starts; the warm-up calls
    turns = [logged[start : start + 3] for start in range(0, len(logged), 3)]
    for first, second in zip(turns[::2], turns[1::2], strict=True):
        (one,), (other,) = ({process for process, _ in turn} for turn in (first, second))
        assert one != other
        assert [text for _, text in first] == [text for _, text in second]
    assert len(turns) == 4 * 2


def test_floor_must_be_a_subject_that_encodes_nothing(calls: Path) -> None:
    subject = Subject("a", "function", "logged:encode")
    with pytest.raises(InputError, match="a cannot be the floor"):
        benchmark([replace(subject, name="b")], ["one"], floor=subject)
    with pytest.raises(InputError, match="floor encodes nothing; pass it as the floor"):
        benchmark([FLOOR], ["one"])
