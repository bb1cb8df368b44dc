from collections.abc import Callable
from dataclasses import replace

import numpy as np
from edgeembed_bench.machine import Load
from edgeembed_bench.report import BenchReport
from edgeembed_bench.show import report_markdown
from edgeembed_bench.show.contents import contents
from edgeembed_bench.show.notes import CARE

Make = Callable[..., BenchReport]


def test_nothing_is_to_be_doubted_after_a_quiet_run(report: BenchReport) -> None:
    assert CARE not in contents(report).notes


def test_what_disturbed_the_run_comes_with_what_to_do(report: BenchReport) -> None:
    (line,) = contents(replace(report, load=Load(3.0, 0.0, None))).notes[CARE]
    assert "load average was 3.0" in line
    assert "close other programs" in line


def test_too_few_processes_are_said_once(bare_report: BenchReport) -> None:
    (line,) = contents(bare_report).notes[CARE]
    assert "was not tested" in line
    assert "--processes" in line


def test_noise_is_said_with_its_size(report: BenchReport) -> None:
    teacher, student = report.subjects
    draw = np.random.default_rng(1)
    noisy = tuple(
        replace(run, latency_ms=tuple(np.asarray(run.latency_ms) * draw.uniform(0.5, 2))) for run in student.processes
    )
    found = contents(replace(report, subjects=(teacher, replace(student, processes=noisy))))
    (line,) = found.notes[CARE]
    assert line.startswith("student: differences of latency below ")
    assert "close other programs, or raise --runs or --processes" in line


def test_the_bench_s_own_time_is_said_where_it_counts(report: BenchReport) -> None:
    teacher, student = report.subjects
    slow = tuple(replace(run, overhead_ms=0.05) for run in student.processes)
    (line,) = contents(replace(report, subjects=(teacher, replace(student, processes=slow)))).notes[CARE]
    assert "10% of the latency of student" in line


def test_one_reason_is_given_once_and_how_to_get_what_is_missing(bare_report: BenchReport) -> None:
    lines = contents(bare_report).notes["Not measured"]
    assert lines[0].startswith("energy: no RAPL counter")
    assert "quality: give --sts or --retrieval" in lines
    assert report_markdown(bare_report).count("no RAPL counter") == 1


def test_the_run_can_be_made_again(report: BenchReport) -> None:
    text = report_markdown(report)
    for fact in (
        *("960 texts", "8 fresh processes", "one thread", "seed 0", "STS-B test", "5f" * 32),
        *("AMD EPYC 9654", "2 of 8 cores", "16 GiB", "avx512_vnni"),
        *("onnxruntime 1.24.1", "RAPL package + DRAM", "2026-11-21"),
    ):
        assert fact in text


def test_a_finding_says_faster_smaller_and_as_good(report: BenchReport) -> None:
    findings = contents(report).findings
    assert findings["student"] == "12x faster than teacher, 8 % of its size, 95 % of its quality"
    assert findings["teacher"].startswith("what the others are compared with: ")


def test_a_finding_is_not_surer_than_the_run(make_report: Make, report: BenchReport) -> None:
    assert contents(make_report(2, processes=3)).findings["student"].startswith("about ")
    twin = replace(report.subjects[0], subject=replace(report.subjects[0].subject, name="twin"))
    found = contents(replace(report, subjects=(*report.subjects, twin))).findings["twin"]
    assert found.startswith("no faster and no slower than teacher")


def test_a_finding_of_the_slower_and_larger(report: BenchReport) -> None:
    found = contents(replace(report, baseline="student")).findings["teacher"]
    assert found == "12x slower than student, 12x its size, 105 % of its quality"
