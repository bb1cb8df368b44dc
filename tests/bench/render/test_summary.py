import json
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from edgeembed_bench.energy import EnergyWindow
from edgeembed_bench.machine import Load
from edgeembed_bench.meters import Reading
from edgeembed_bench.render.summary import build_content
from edgeembed_bench.render.tables import interval, ratio
from edgeembed_bench.report import BenchmarkReport

Make = Callable[..., BenchmarkReport]


def with_twin(report: BenchmarkReport) -> BenchmarkReport:
    """Add a subject with the same samples as the baseline."""
    teacher = report.subjects[0]
    return replace(report, subjects=(*report.subjects, replace(teacher, subject=replace(teacher.subject, name="twin"))))


def test_summary_states_ratio_with_interval_size_and_quality(report: BenchmarkReport) -> None:
    estimate = report.compare_latency("student").ratio
    assert build_content(report).summary == {
        "teacher": (
            f"teacher (baseline) has a median latency of {report['teacher'].latency.median:.2f} ms per text, 90.9 MB "
            "on disk, and a mean quality score of 66.5."
        ),
        "student": (
            f"student is 12x faster than teacher (latency ratio {ratio(estimate.value)}, 95 % CI {interval(estimate)}),"
            " has 8 % of the baseline's size (7.4 MB), and reaches 95 % of the baseline's mean score "
            "(63.3 against 66.5)."
        ),
    }


def test_summary_of_a_slower_and_larger_subject(report: BenchmarkReport) -> None:
    sentence = build_content(replace(report, baseline="student")).summary["teacher"]
    assert sentence.startswith("teacher is 12x slower than student (latency ratio 12")
    assert "has 12x the baseline's size (90.9 MB), and reaches 105 % of" in sentence


def test_baseline_comes_first_wherever_it_was_measured(report: BenchmarkReport) -> None:
    assert list(build_content(replace(report, baseline="student")).summary) == ["student", "teacher"]


def test_summary_claims_no_difference_that_the_test_did_not_find(report: BenchmarkReport) -> None:
    sentence = build_content(with_twin(report)).summary["twin"]
    assert sentence.startswith("No difference detected in latency between twin and teacher (ratio 1, 95 % CI 1–1); ")  # noqa: RUF001
    assert not re.search("faster|slower", sentence)


def test_summary_says_when_significance_was_not_tested(make_report: Make) -> None:
    sentence = build_content(make_report(2, processes=3)).summary["student"]
    assert re.search(r"latency ratio to teacher of 0\.08\d? \(95 % CI 0\.0.*, significance not tested\)", sentence)
    assert not re.search("faster|slower", sentence)
    fewer = build_content(make_report(2, processes=2)).summary["student"]
    assert "(significance not tested)" in fewer
    assert "CI" not in fewer


def test_summary_leaves_out_missing_measurements(bare_report: BenchmarkReport) -> None:
    assert "score" not in "".join(build_content(bare_report).summary.values())
    teacher, student = bare_report.subjects
    unsized = replace(bare_report, subjects=(teacher, replace(student, size=replace(student.size, files=()))))
    sentence = build_content(unsized).summary["student"]
    assert "size" not in sentence
    assert sentence.endswith("significance not tested).")


def test_summary_of_one_subject_names_no_baseline(make_report: Make) -> None:
    (sentence,) = build_content(make_report(1)).summary.values()
    assert sentence.startswith("teacher has a median latency of ")


def test_quiet_run_has_no_warnings(report: BenchmarkReport) -> None:
    assert build_content(report).warnings == []
    assert "Warnings" not in report.to_markdown()


def test_disturbance_is_reported_with_a_remedy(report: BenchmarkReport) -> None:
    (line,) = build_content(replace(report, load=Load(3.0, 0.0, None))).warnings
    assert "load average was 3.0" in line
    assert "close other programs" in line


def test_too_few_processes_are_reported_once(bare_report: BenchmarkReport) -> None:
    (line,) = build_content(bare_report).warnings
    assert "not tested for significance" in line
    assert "--processes" in line


def test_noise_is_reported_in_one_line_with_its_size(make_report: Make) -> None:
    teacher, *others = make_report(3).subjects
    generator = np.random.default_rng(1)
    noisy = [
        replace(
            subject,
            processes=tuple(
                replace(run, latency_ms=tuple(np.asarray(run.latency_ms) * generator.uniform(0.5, 2)))
                for run in subject.processes
            ),
        )
        for subject in others
    ]
    (line,) = build_content(replace(make_report(3), subjects=(teacher, *noisy))).warnings
    assert re.match(r"latency differences .* smaller than \d+ % \(student\) and \d+ % \(student-int4\) cannot be", line)
    assert "close other programs, or raise --runs or --processes" in line


def test_benchmark_overhead_is_reported_if_it_exceeds_two_percent(report: BenchmarkReport) -> None:
    teacher, student = report.subjects
    slow = tuple(replace(run, timer_ms=0.05) for run in student.processes)
    (line,) = build_content(replace(report, subjects=(teacher, replace(student, processes=slow)))).warnings
    assert "10 % of the latency of student" in line


def test_missing_measurements_name_the_reason_once_and_the_option(bare_report: BenchmarkReport) -> None:
    lines = build_content(bare_report).notes["Not measured"]
    assert lines[0].startswith("energy: no RAPL counter")
    assert "quality: pass --sts or --retrieval" in lines
    assert bare_report.to_markdown().count("no RAPL counter") == 1


def test_discarded_energy_windows_are_stated_with_the_reason(report: BenchmarkReport) -> None:
    teacher, student = report.subjects
    backwards = EnergyWindow(100, Reading(None, 1.0, {}, "a RAPL counter ran backwards"))
    energy = replace(student.energy, windows=(*student.energy.windows, backwards))
    changed = replace(report, subjects=(teacher, replace(student, energy=energy)))
    line = "1 of 4 windows discarded: a RAPL counter ran backwards"
    assert f"energy of student: {line}" in build_content(changed).notes["Not measured"]
    assert json.loads(changed.to_json())["derived"]["student"]["energy_discarded"] == [line]


def test_notes_describe_how_to_repeat_the_run(report: BenchmarkReport) -> None:
    text = report.to_markdown()
    for fact in (
        *("960 single texts", "8 fresh processes", "one thread", "seed 0", "STS-B test", "5f" * 32),
        *("AMD EPYC 9654", "2 of 8 logical cores", "16 GiB", "avx512_vnni"),
        *("onnxruntime 1.24.1", "RAPL package + DRAM", "2026-11-21"),
    ):
        assert fact in text
