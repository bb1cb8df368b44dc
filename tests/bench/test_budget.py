import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from edgeembed_bench import BenchmarkReport, Budget, Size, Subject
from edgeembed_runtime.errors import InputError

MakeReport = Callable[..., BenchmarkReport]


def _failures(report: BenchmarkReport, budget: Budget, *names: str) -> list[str]:
    checks = report.with_budget(budget, names or ("student",)).limit_checks()
    return [check.failure for check in checks if check.failure is not None]


@pytest.mark.parametrize("budget", [Budget(), Budget(max_latency_ratio=0.5), Budget(max_mb=8), Budget(min_quality=90)])
def test_model_within_its_budget_has_no_failures(make_report: MakeReport, budget: Budget) -> None:
    assert _failures(make_report(2), budget) == []


@pytest.mark.parametrize(
    ("budget", "line"),
    [
        (Budget(max_latency_ratio=0.01), "latency (x teacher)"),
        (Budget(max_mb=7), "student: size (MB) 7.400, more than 7"),
        (Budget(min_quality=99.5), "quality (% of teacher)"),
    ],
)
def test_each_exceeded_limit_is_one_line_with_the_name_of_the_model(
    make_report: MakeReport, budget: Budget, line: str
) -> None:
    (failure,) = _failures(make_report(2), budget)
    assert failure.startswith("student: ")
    assert line in failure


def test_failure_with_too_few_processes_says_that_there_is_no_interval(make_report: MakeReport) -> None:
    (failure,) = _failures(make_report(2, processes=2), Budget(max_latency_ratio=0.01))
    assert "(no 95 % interval: 2 processes were measured;" in failure


def test_all_failures_are_listed(make_report: MakeReport) -> None:
    failures = _failures(make_report(3), Budget(max_latency_ratio=0.01, max_mb=1), "student", "student-int4")
    assert len(failures) == 4


def _unsized(report: BenchmarkReport, reason: str | None) -> BenchmarkReport:
    teacher, student = report.subjects
    return replace(report, subjects=(teacher, replace(student, size=Size((), reason))))


def _partly_scored(report: BenchmarkReport, name: str) -> BenchmarkReport:
    return replace(
        report,
        subjects=tuple(
            replace(each, quality={"STS-B Spearman": 50.0}) if each.name == name else each for each in report
        ),
    )


@pytest.mark.parametrize(
    ("change", "budget", "line"),
    [
        (
            lambda report: _unsized(report, "the size is unknown: it is given by its name"),
            Budget(max_mb=8),
            "student: size (MB) not measured, limit 8: the size is unknown: it is given by its name",
        ),
        (
            lambda report: _unsized(report, None),
            Budget(max_mb=8),
            "student: size (MB) not measured, limit 8: its files are unknown",
        ),
        (
            lambda report: _partly_scored(report, "student"),
            Budget(min_quality=90),
            "student: quality (% of teacher) not measured, limit 90: student has no score on SciFact nDCG@10",
        ),
        (
            lambda report: _partly_scored(report, "teacher"),
            Budget(min_quality=90),
            "student: quality (% of teacher) not measured, limit 90: teacher has no score on SciFact nDCG@10",
        ),
        (
            lambda report: replace(report, subjects=tuple(replace(each, quality={}) for each in report)),
            Budget(min_quality=90),
            "student: quality (% of teacher) not measured, limit 90: nothing was scored; pass sts or retrieval sets",
        ),
        (
            lambda report: report,
            Budget(max_start_ratio=1.5),
            "student: cold start (x floor) not measured, limit 1.5: the run has no floor",
        ),
    ],
)
def test_limit_on_something_not_measured_fails_with_the_reason_and_loses_no_report(
    make_report: MakeReport, change: Callable[[BenchmarkReport], BenchmarkReport], budget: Budget, line: str
) -> None:
    report = change(make_report(2)).with_budget(budget, ["student"])
    (check,) = report.limit_checks()
    assert (check.result, check.measured, check.is_kept) == ("not measured", None, False)
    assert check.failure == line
    (limit,) = json.loads(report.to_json())["limits"]
    assert (limit["result"], limit["measured"]) == ("not measured", None)
    assert line.endswith(f": {limit['reason']}")
    for shown in (report.to_markdown(), report.to_html()):
        assert "not measured" in shown.partition("Limits")[2]


@pytest.mark.parametrize(
    ("budget", "subject", "message"),
    [
        (Budget(max_mb=8), Subject("a", "function", "module:embed"), r"size \(MB\) .* for a: .*names no files"),
        (Budget(max_mb=8), Subject("a", "fastembed", "BAAI/bge-small-en-v1.5"), "for a: .* is given by its name"),
        (Budget(max_overhead_us=15), Subject("a", "function", "module:embed"), "overhead of a call .* for a"),
        (Budget(max_overhead_us=15), Subject("a", "fastembed", "BAAI/bge-small-en-v1.5"), "overhead of a call"),
        (Budget(max_overhead_us=15), Subject("a", "model2vec", "/"), "overhead of a call"),
    ],
)
def test_limit_that_no_run_can_check_is_an_input_error(budget: Budget, subject: Subject, message: str) -> None:
    bundle = Subject("b", "bundle")
    with pytest.raises(InputError, match=message):
        budget.check_subjects([bundle, subject])
    budget.check_subjects([bundle])
    Budget(min_quality=1, max_latency_ratio=1).check_subjects([bundle, subject])
