import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from edgeembed_bench import runtime, runtime_measurement
from edgeembed_bench.machine import this_machine
from edgeembed_bench.random_students import Architecture, write_random_student
from edgeembed_bench.runtime_measurement import measure_runtime
from edgeembed_bench.runtime_report import RuntimeReport, RuntimeSettings, SubjectRun
from edgeembed_bench.runtime_table import runtime_tables
from edgeembed_bench.schedule import Samples
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import Start, started
from edgeembed_runtime import Bundle, Encoder, InputError
from edgeembed_runtime.builtin_models import builtin_bundle
from rich.console import Console

_SUBJECT = """
import os

def encode(texts):
    with open(os.environ["CALLS"], "a") as calls:
        calls.writelines(f"{os.getpid()} {text}\\n" for text in texts)
    return [[1.0, 2.0] for _ in texts]
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stub writes down its calls: process id and text."""
    (tmp_path / "trivial.py").write_text(_SUBJECT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setattr(runtime_measurement, "BLOCK", 2)
    monkeypatch.setattr(runtime_measurement, "WARMUP", 3)
    monkeypatch.setattr(runtime_measurement, "PROCESSES", 1)
    return tmp_path / "calls"


def _measured(rounds: int, starts: int) -> RuntimeReport:
    stubs = [Subject(name, "function", "trivial:encode", modules=("json",)) for name in "ab"]
    texts = ["one", "two", "three", "four"]
    floor = Subject("floor", "nothing", modules=("json",))
    return measure_runtime([floor, *stubs], texts, texts_from="a test", rounds=rounds, starts=starts)


def test_every_sample_is_kept_and_what_warms_up_is_apart(calls: Path) -> None:
    report = _measured(rounds=3, starts=2)
    for name in "ab":
        (latency,) = report[name].latency
        assert len(latency.timed_ms) == 3 * 2
        assert len(latency.warmup_ms) == 3 + 3
        assert len(report[name].starts) == 2
    assert report["floor"].latency == ()
    assert report["floor"].resident_bytes == ()


def test_each_start_is_a_fresh_process_and_latency_has_one_of_its_own(calls: Path) -> None:
    _measured(rounds=1, starts=2)
    by_process: dict[str, list[str]] = {}
    for line in calls.read_text().splitlines():
        process, text = line.split(" ", 1)
        by_process.setdefault(process, []).append(text)
    lengths = sorted(len(texts) for texts in by_process.values())
    assert lengths == [1] * 2 * 3 + [1 + 3 + 3] * 2


def test_turns_are_shared_out_among_processes_and_rounded_up(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_measurement, "PROCESSES", 3)
    report = _measured(rounds=4, starts=1)
    assert (report.settings.processes, report.settings.rounds) == (3, 6)
    for name in "ab":
        assert [len(latency.timed_ms) for latency in report[name].latency] == [2 * 2] * 3
        assert len(report[name].resident_bytes) == 3
    ratio = report.latency_ratio("b")
    assert ratio is not None
    assert ratio.reason is None
    processes = {line.split(" ", 1)[0] for line in calls.read_text().splitlines()}
    assert len(processes) == 2 * 2 + 2 * 3  # two starts of two stubs, and three processes each


def test_subjects_take_turns_on_the_same_texts(calls: Path) -> None:
    _measured(rounds=4, starts=1)
    logged = [line.split(" ", 1) for line in calls.read_text().splitlines()][2 * 2 + 2 + 2 * 3 :]
    turns = [logged[start : start + 3] for start in range(0, len(logged), 3)]
    for first, second in zip(turns[::2], turns[1::2], strict=True):
        (one,), (other,) = ({process for process, _ in turn} for turn in (first, second))
        assert one != other
        assert [text for _, text in first] == [text for _, text in second]
    assert len(turns) == 4 * 2


def test_nothing_to_measure_is_refused() -> None:
    with pytest.raises(InputError, match="0 texts"):
        measure_runtime([], [], texts_from="a test")


def _start(total_ms: float, resident_mb: int | None) -> Start:
    resident = None if resident_mb is None else resident_mb * 10**6
    return Start(1.0, 1.0, 1.0, total_ms - 3.0, resident, resident)


def _run(name: str, latency_ms: list[float] | None, starts: list[Start], added_us: float | None = None) -> SubjectRun:
    times = () if latency_ms is None else (Samples(tuple(latency_ms), (9.9,)),) * 3
    figures = {"tokenize": 30.0, "run": 60.0, "bare": 100.0, "encode": 100.0 + (added_us or 0)}
    parts: dict[str, tuple[float, ...]] = {part: (figure,) * 5 for part, figure in figures.items()}
    facts = {"dimension": 2, "python": "3", "versions": {"numpy": "2"}}
    memory, parts_us = (10**8,) * 3, () if added_us is None else (parts,) * 3
    return SubjectRun(Subject(name, "bundle", note="a note"), facts, tuple(starts), starts[0], times, parts_us, memory)


@pytest.fixture
def report() -> RuntimeReport:
    """Figures that can be checked by hand."""
    runs = (
        _run("floor", None, [_start(100, 40)] * 3),
        _run("ours", [1.0, 2.0, 3.0], [_start(140, 50)] * 3, added_us=12.5),
        _run("peer", [10.0, 20.0, 30.0], [_start(300, None)] * 3),
    )
    settings = RuntimeSettings(3, 3, 3, 1, 3, 1, 0, "a test", 3, 20.0, core=0, load_average=0.1)
    left_out = {"absent": "it is not here"}
    return RuntimeReport("2026-01-01", this_machine(), settings, "ours", "floor", ("ours",), runs, left_out)


def _values(report: RuntimeReport) -> dict[str, tuple[float | None, bool | None]]:
    return {
        target.what: (target.measured.value if target.measured else None, target.is_met) for target in report.targets()
    }


def test_targets_stand_beside_what_was_measured(report: RuntimeReport) -> None:
    assert _values(report) == {
        "ours: overhead of a call, us": (12.5, True),
        "ours: cold start, x floor": (pytest.approx(1.4), True),
        "ours: resident memory, x floor": (pytest.approx(1.25), True),
    }


def test_a_target_that_is_missed_says_so(report: RuntimeReport) -> None:
    slow = _run("ours", [1.0], [_start(151, 61)] * 3, added_us=15.5)
    missed = replace(report, runs=(_run("floor", None, [_start(100, 40)] * 3), slow))
    assert [met for _, met in _values(missed).values()] == [False] * 3


def test_a_target_within_the_interval_is_neither_met_nor_missed(report: RuntimeReport) -> None:
    noisy = replace(report["ours"], parts_us=tuple({"bare": (0.0,), "encode": (us,)} for us in (8.0, 14.0, 20.0)))
    (target, *_) = replace(report, runs=(report["floor"], noisy)).targets()
    assert target.measured is not None
    assert target.measured.value == pytest.approx(14)
    assert (target.measured.low or 0) < 15 < (target.measured.high or 0)
    assert target.is_met is None


def test_a_target_measured_in_one_process_is_neither_met_nor_missed(report: RuntimeReport) -> None:
    floor, ours = (replace(run, starts=run.starts[:1], parts_us=run.parts_us[:1]) for run in report.runs[:2])
    once = replace(report, runs=(floor, ours))
    assert [met for _, met in _values(once).values()] == [None] * 3
    assert "at least 3" in json.loads(once.to_json())["targets"][0]["measured"]["reason"]
    assert "unclear" in _shown(once)


def test_a_subject_that_is_not_in_the_report_is_named(report: RuntimeReport) -> None:
    with pytest.raises(InputError, match="no subject 'nobody' in the report; expected one of: floor, ours, peer"):
        report.latency_ratio("nobody")


def test_ratios_are_against_the_baseline_and_the_floor(report: RuntimeReport) -> None:
    latency, memory = report.latency_ratio("peer"), report.memory_ratio("peer")
    assert latency is not None
    assert latency.value == pytest.approx(10)
    assert report.start_ratio("peer").value == pytest.approx(3)
    assert memory is None
    assert report.latency_ratio("floor") is None


def test_json_holds_samples_figures_targets_and_its_version(report: RuntimeReport) -> None:
    found = json.loads(report.to_json())
    ours = found["runs"][1]
    assert (found["schema_version"], found["kind"]) == (2, "runtime")
    assert ours["latency"][0]["timed_ms"] == [1.0, 2.0, 3.0]
    assert ours["derived"]["latency_ms"] == {"q1": 1.0, "median": 2.0, "q3": 3.0}  # over all processes
    assert ours["derived"]["overhead_us"]["value"] == 12.5
    assert found["targets"][0]["is_met"] is True
    assert found["machine"]["cpu"]


def _shown(report: RuntimeReport) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(runtime_tables(report))
    return capture.get()


def test_the_tables_show_figures_targets_and_what_was_left_out(report: RuntimeReport) -> None:
    shown = _shown(report)
    for part in ("12.5", "10.000", "1.40", "at most", "absent left out: it is not here", "peer: a note"):
        assert part in shown
    assert "PROVISIONAL" not in shown


def test_a_busy_machine_makes_the_result_provisional(report: RuntimeReport) -> None:
    assert "PROVISIONAL" in _shown(replace(report, settings=replace(report.settings, load_average=3.0)))


def test_texts_are_the_lines_of_a_file_or_both_columns_of_sts(tmp_path: Path) -> None:
    lines, pairs = tmp_path / "lines.txt", tmp_path / "pairs.tsv"
    lines.write_text("one\n\ntwo\none\n")
    pairs.write_text("score\tsentence1\tsentence2\n5\ta cat\ta dog\n1\ta cat\ta bird\n")
    assert runtime.read_texts(lines) == (str(lines), ["one", "two"])
    assert runtime.read_texts(pairs)[1] == ["a cat", "a dog", "a bird"]


def test_without_the_data_folder_texts_are_docstrings_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    texts_from, texts = runtime.read_texts(None)
    assert "dev.tsv is absent" in texts_from
    assert len(texts) > 100


def test_a_peer_that_is_not_built_is_left_out_with_the_reason(tmp_path: Path) -> None:
    found, left_out = runtime.present([Subject("gone", "onnx", str(tmp_path / "gone"))])
    assert found == []
    assert left_out == {"gone": f"{tmp_path}/gone is absent; make bench-runtime builds it"}


def test_texts_that_cannot_be_read_are_refused_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        runtime.main(["--texts", str(tmp_path / "none.txt")])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith(f"bench-runtime: {tmp_path}/none.txt cannot be read")


_SPY = """
import os
from pathlib import Path

Path(os.environ["SPY"]).write_text(os.environ.get("ORT_DISABLE_TELEMETRY", "not set"))
"""


@pytest.mark.parametrize(("asked", "expected"), [(None, "1"), ("0", "0")])
def test_the_floor_and_the_runtime_have_the_same_telemetry_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str | None, expected: str
) -> None:
    # As where the bench's own process has not imported the runtime, which sets the variable there.
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    if asked is not None:
        monkeypatch.setenv("ORT_DISABLE_TELEMETRY", asked)
    (tmp_path / "spy.py").write_text(_SPY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path) + os.pathsep + os.environ.get("PYTHONPATH", ""))
    found = {}
    for subject in (runtime.floor(), runtime.shipped()):
        monkeypatch.setenv("SPY", str(tmp_path / subject.name))
        with started(replace(subject, modules=(*subject.imports, "spy")), "a text"):
            found[subject.name] = (tmp_path / subject.name).read_text()
    assert found == {"floor": expected, "edgeembed": expected}


def test_the_floor_leaves_no_identifier_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "ORT_DISABLE_TELEMETRY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    with started(runtime.floor(), "a text"):
        assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("architecture", ["hybrid", "cbow"])
def test_a_random_student_is_a_bundle_that_encodes(tmp_path: Path, architecture: Architecture) -> None:
    shipped = Bundle.open(builtin_bundle())
    write_random_student(tmp_path / "student", architecture, shipped)
    vector = Encoder.load(tmp_path / "student", verify=True).encode("A man is playing a guitar.")
    assert vector.shape == (shipped.dimension,)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_the_benchmark_runs_on_what_is_here_and_splits_bundles_into_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runtime, "peers", lambda built: [Subject("peer", "onnx", str(built / "none"))])
    texts, out = tmp_path / "texts.txt", tmp_path / "out.json"
    texts.write_text("A man is playing a guitar.\nA dog runs.\n")
    with pytest.raises(SystemExit) as left:
        runtime.main(["--quick", "--texts", str(texts), "--built", str(tmp_path / "built"), "--json", str(out)])
    assert left.value.code == 0
    found = json.loads(out.read_text())
    assert [run["subject"]["name"] for run in found["runs"]] == ["floor", "edgeembed", "numpy hybrid", "numpy cbow"]
    assert set(found["runs"][1]["parts_us"][0]) == {"encode", "bare", "tokenize", "run"}
    assert "peer left out" in capsys.readouterr().out
