import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from edgeembed_bench import BenchmarkReport, Interval, compare_reports
from edgeembed_bench.render import terminal_comparison
from edgeembed_runtime.errors import InputError
from rich.console import Console

MakeReport = Callable[..., BenchmarkReport]


def _slower(report: BenchmarkReport, name: str, factor: float) -> BenchmarkReport:
    def scaled(result: Any) -> Any:
        runs = (replace(run, latency_ms=tuple(factor * time for time in run.latency_ms)) for run in result.processes)
        return replace(result, processes=tuple(runs)) if result.name == name else result

    return replace(report, subjects=tuple(map(scaled, report)))


def test_slower_subject_changes_both_ratios(make_report: MakeReport) -> None:
    before = make_report(3)
    changed = {change.name: change for change in compare_reports(before, _slower(before, "student", 2)).changes}
    assert changed["student"].latency_ratio == pytest.approx(2)
    assert changed["student"].relative_ratio == pytest.approx(2)
    assert changed["teacher"].latency_ratio == pytest.approx(1)


def test_drift_of_the_machine_cancels_in_the_relative_ratio(make_report: MakeReport) -> None:
    before = make_report(2)
    after = _slower(_slower(before, "student", 1.5), "teacher", 1.5)
    (_, student) = compare_reports(before, after).changes
    assert student.latency_ratio == pytest.approx(1.5)
    assert student.relative_ratio == pytest.approx(1)


@pytest.mark.parametrize("processes", [8, 4])
def test_ratio_compares_the_times_of_the_same_texts(make_report: MakeReport, processes: int) -> None:
    before = make_report(2)
    latency_ms = [time for run in before["student"].processes for time in run.latency_ms]
    low, high = np.quantile(latency_ms, (0.4, 0.6))
    # 6 % slower, but on the texts around the median much faster.
    slower = [time * (0.6 if low < time < high else 1.06) for time in latency_ms]
    share = len(slower) // processes
    runs = tuple(
        replace(run, latency_ms=tuple(slower[place * share : (place + 1) * share]))
        for place, run in enumerate(before["student"].processes[:processes])
    )
    after = replace(before, subjects=(before.subjects[0], replace(before["student"], processes=runs)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BenchmarkReport, "latency_ratio", lambda *_: Interval(1.0, None, None))
        change = compare_reports(before, after).changes[1]
    assert after["student"].latency.median < 0.95 * before["student"].latency.median
    assert change.latency_ratio == pytest.approx(1.06)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cpu": "another"}, "cpu: AMD EPYC 9654 96-Core Processor and another"),
        ({"flags": ("avx2", "fpu")}, r"flags: 2 only in the first \(avx512_vnni avx512f\), 0 only in the second"),
        ({"governor": "powersave"}, "governor: None and powersave"),
        ({"available_cores": 1}, "available_cores: 2 and 1"),
    ],
)
def test_different_machines_raise_input_error_with_the_difference(
    make_report: MakeReport, change: dict[str, Any], message: str
) -> None:
    before = make_report(2)
    after = replace(before, machine=replace(before.machine, **change))
    with pytest.raises(InputError, match=message):
        compare_reports(before, after)
    assert len(compare_reports(before, after, allow_unlike=True).unlike) == 1


def test_different_settings_or_texts_raise_input_error(make_report: MakeReport) -> None:
    before = make_report(2)
    with pytest.raises(InputError, match="threads: 1 and 2"):
        compare_reports(before, replace(before, settings=replace(before.settings, threads=2)))
    with pytest.raises(InputError, match="sha256"):
        compare_reports(before, replace(before, texts=replace(before.texts, sha256="00")))


def test_differences_of_a_subject_are_named(make_report: MakeReport) -> None:
    before = make_report(2)
    teacher, student = before.subjects
    info = replace(student.info, versions=student.info.versions | {"onnxruntime": "1.30.0"})
    after = replace(before, subjects=(teacher, replace(student, info=info, size=replace(student.size, files=()))))
    changes = compare_reports(before, after).changes
    assert changes[0].differs_in == []
    assert changes[1].differs_in == ["files", "onnxruntime 1.24.1 -> 1.30.0"]


def test_subjects_of_only_one_report_are_named_and_no_common_subject_raises_input_error(
    make_report: MakeReport,
) -> None:
    comparison = compare_reports(make_report(3), make_report(2))
    assert comparison.only_before == ("student-int4",)
    assert comparison.only_after == ()
    with pytest.raises(InputError, match="share no subject: teacher and other"):
        compare_reports(make_report(1), make_report(1, names=("other",)))


def test_json_has_null_for_missing_measurements(make_report: MakeReport) -> None:
    bare = make_report(2, bare=True)
    content = compare_reports(bare, bare).to_dict()
    assert content["changes"][1]["before"]["mj_per_inference"] is None
    assert content["changes"][1]["latency_ratio"] == 1


def test_comparison_shows_both_values_and_how_to_read_the_ratios(make_report: MakeReport) -> None:
    comparison = compare_reports(make_report(2), make_report(2))
    output = io.StringIO()
    Console(file=output, width=80).print(terminal_comparison(comparison))
    markdown = comparison.to_markdown()
    for text in (output.getvalue(), markdown):
        assert "7.4 → 7.4" in text
        assert "adjusted ratio" in text
        assert "drift of the machine" in " ".join(text.split())
    assert markdown.startswith("# Benchmark comparison\n")
    assert max(map(len, output.getvalue().splitlines())) <= 80


def test_comparison_lists_differences_of_machine_and_subjects(make_report: MakeReport) -> None:
    before, after = make_report(3), make_report(2)
    unlike = replace(after, machine=replace(after.machine, governor="powersave"))
    markdown = compare_reports(before, unlike, allow_unlike=True).to_markdown()
    assert "- machine or settings differ: governor: None and powersave" in markdown
    assert "- only before: student-int4" in markdown
