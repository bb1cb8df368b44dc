import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from edgeembed_bench import BenchmarkReport, Comparison, compare_reports, read_report
from edgeembed_bench.renderable import Renderable
from edgeembed_runtime.errors import InputError

Make = Callable[..., BenchmarkReport]
METHODS = ["to_json", "to_markdown", "to_html"]


@pytest.fixture(scope="module")
def comparison(make_report: Make) -> Comparison:
    before = make_report(3, bare=True, processes=3)
    return compare_reports(before, make_report(2, bare=True, processes=3))


@pytest.fixture(scope="module", params=["report", "comparison"])
def result(request: pytest.FixtureRequest) -> Renderable:
    """Each kind of result; the report without optional measurements, because it is drawn faster."""
    name = "bare_report" if request.param == "report" else request.param
    fixture: Renderable = request.getfixturevalue(name)
    return fixture


def test_report_prints_one_line_per_subject(report: BenchmarkReport) -> None:
    heading, teacher, student = repr(report).splitlines()
    assert str(report) == repr(report)
    assert heading == "BenchmarkReport: subjects 2, baseline teacher"
    assert teacher == f"  teacher: {report['teacher'].latency.median:.3g} ms per text, 90.9 MB, quality 66.5"
    ratio = report.latency_ratio("student").value
    assert student == (
        f"  student: {report['student'].latency.median:.3g} ms per text (ratio {ratio:.3g}), 7.4 MB, quality 63.3"
    )


def test_printed_report_leaves_out_missing_measurements(bare_report: BenchmarkReport) -> None:
    unsized = tuple(replace(each, size=replace(each.size, files=(), reason="none")) for each in bare_report)
    _, teacher, student = repr(replace(bare_report, subjects=unsized)).splitlines()
    assert teacher.endswith(" ms per text")
    assert student.endswith(")")


def test_comparison_prints_one_line_per_subject(comparison: Comparison) -> None:
    heading, teacher, student = str(comparison).splitlines()
    assert heading == "Comparison: subjects 2"
    before, after = (each.latency.median for each in (comparison.changes[0].before, comparison.changes[0].after))
    ratio = comparison.changes[0].latency_ratio
    assert teacher == f"  teacher: {before:.3g} -> {after:.3g} ms per text (ratio {ratio:.3g})"
    assert student.startswith("  student: ")


def test_json_is_the_dictionary(result: Renderable) -> None:
    assert json.loads(result.to_json()) == json.loads(json.dumps(result.to_dict()))


def test_report_is_read_from_the_file_it_wrote(bare_report: BenchmarkReport, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    bare_report.to_json(file)
    assert read_report(str(file)) == bare_report


@pytest.mark.parametrize("method", METHODS)
def test_file_holds_the_returned_text_and_replaces_another(result: Renderable, method: str, tmp_path: Path) -> None:
    file = tmp_path / "output"
    file.write_text("another", encoding="utf-8")
    text = getattr(result, method)(str(file))
    assert file.read_text(encoding="utf-8").rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize("method", METHODS)
def test_file_that_cannot_be_written_raises_input_error(comparison: Comparison, method: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder"):
        getattr(comparison, method)(tmp_path)


def test_page_is_whole_and_a_notebook_shows_its_content_alone(result: Renderable) -> None:
    page, shown = result.to_html(), result._repr_html_()
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    for tag in ("<!DOCTYPE", "<html", "<head>", "<style", "<body", "<main", "<script"):
        assert tag not in shown
    rows = page.count("<tr>")
    assert shown.count("<tr>") == rows > 2
    assert "prefers-color-scheme" in page


def test_notebook_shows_light_plots_and_no_ids(bare_report: BenchmarkReport) -> None:
    shown = bare_report._repr_html_()
    markers, plots = len(bare_report.subjects), 1
    assert shown.count('src="data:image/svg+xml;base64,') == markers + plots
    assert 'class="dark"' not in shown
    assert ' id="' not in shown


def test_comparison_shows_its_notes(comparison: Comparison) -> None:
    for text in (comparison.to_markdown(), comparison.to_html(), comparison._repr_html_()):
        assert "only before: student-int4" in text
