from collections.abc import Callable

import pytest
from edgeembed_bench import BenchmarkReport, Budget
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


def test_limit_on_something_not_measured_is_an_input_error(make_report: MakeReport) -> None:
    with pytest.raises(InputError, match="the limit on quality cannot be checked for student: not measured"):
        _failures(make_report(2, bare=True), Budget(min_quality=1))
