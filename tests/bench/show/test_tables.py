import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from edgeembed_bench.energy import Energy
from edgeembed_bench.report import BenchReport
from edgeembed_bench.show import report_markdown, report_table
from edgeembed_bench.show.contents import contents
from edgeembed_bench.show.tables import Table
from markdown_it import MarkdownIt
from rich.console import Console

Make = Callable[..., BenchReport]


def in_terminal(report: BenchReport, width: int = 100) -> str:
    written = io.StringIO()
    Console(file=written, width=width).print(report_table(report))
    return written.getvalue()


def cell(table: Table, subject: str, column: str) -> str:
    (row,) = (row for row in table.rows if row[0] == subject)
    return row[table.columns.index(column)]


def parsed_tables(markdown: str) -> list[list[list[str]]]:
    """The cells of each table of a document, as a reader of Markdown sees them."""
    tables: list[list[list[str]]] = []
    is_cell = False
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type in {"th_open", "td_open"}:
            is_cell = True
        elif is_cell and token.type == "inline":
            tables[-1][-1].append("".join(child.content for child in token.children or []))
            is_cell = False
    return tables


def test_a_subject_has_a_row_in_every_table(report: BenchReport) -> None:
    tables = contents(report).tables
    assert [table.title for table in tables] == [
        *("At a glance", "Size", "Time of one text", "Time by length", "Start", "Memory", "Energy", "Quality")
    ]
    for table in tables:
        assert [row[0] for row in table.rows] == ["teacher", "student"]
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_figures_are_those_of_the_report(report: BenchReport) -> None:
    tables = {table.title: table for table in contents(report).tables}
    glance, student = tables["At a glance"], report["student"]
    assert cell(glance, "student", "MB") == "7.4"
    assert float(cell(glance, "student", "ms")) == pytest.approx(student.latency.median, rel=0.01)
    assert float(cell(glance, "student", "× base")) == pytest.approx(report.latency_ratio("student").value, rel=0.02)  # noqa: RUF001  # times
    assert cell(glance, "student", "quality") == f"{report.quality_percent('student'):.0f} %"
    assert cell(tables["Energy"], "student", "mJ") == "12.5"
    assert cell(tables["Energy"], "student", "above idle mJ") == "7.5"
    assert cell(tables["Size"], "student", "packages MB") == "104"
    assert cell(tables["Quality"], "student", "STS-B Spearman") == "69.3"


def test_the_baseline_is_not_compared_with_itself(report: BenchReport) -> None:
    glance = contents(report).tables[0]
    assert cell(glance, "teacher", "verdict") == cell(glance, "teacher", "95 %") == "-"
    assert cell(glance, "student", "verdict") == "faster"


def test_the_verdict_says_what_was_not_tested_and_what_does_not_differ(make_report: Make) -> None:
    few = contents(make_report(2, processes=3)).tables[0]
    assert cell(few, "student", "verdict") == "not tested"
    report = make_report(1)
    twin = replace(report.subjects[0], subject=replace(report.subjects[0].subject, name="twin"))
    alike = contents(replace(report, subjects=(*report.subjects, twin))).tables[0]
    assert cell(alike, "twin", "verdict") == "no difference"


def test_what_was_not_measured_has_no_table_and_no_column(bare_report: BenchReport) -> None:
    tables = {table.title: table for table in contents(bare_report).tables}
    assert not {"Energy", "Quality", "Memory", "Time by length"} & tables.keys()
    assert "texts/s" not in tables["At a glance"].columns
    assert "tokenize ms" not in tables["Time of one text"].columns
    assert "tokenize" not in tables["Time of one text"].reading


def test_energy_that_one_subject_lacks_is_not_measured_and_never_zero(report: BenchReport) -> None:
    teacher, student = report.subjects
    lacking = replace(student, energy=Energy(None, None, (), "the counter stood still"))
    markdown = report_markdown(replace(report, subjects=(teacher, lacking)))
    (energy,) = (table for table in parsed_tables(markdown) if "mJ" in table[0])
    row = dict(zip(energy[0], energy[2], strict=True))
    assert row["mJ"] == row["above idle mJ"] == "not measured"
    assert row["idle W"] == "-"
    assert markdown.count("the counter stood still") == 1
    assert "energy of student: the counter stood still" in markdown


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_terminal_cuts_a_figure_or_a_title(wide_report: BenchReport, width: int) -> None:
    shown = in_terminal(wide_report, width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    words = set(shown.split())
    for table in contents(wide_report).tables:
        for column, *figures in list(zip(table.columns, *table.rows, strict=True))[1:]:
            assert {word for text in (column, *figures) for word in text.split()} <= words, (table.title, column)


def test_a_text_longer_than_a_subject_reads_is_marked(report: BenchReport) -> None:
    teacher, student = report.subjects
    short = replace(report, subjects=(teacher, replace(student, facts=replace(student.facts, max_tokens=64))))
    (table,) = (table for table in contents(short).tables if table.title == "Time by length")
    assert cell(table, "student", "128 tokens").endswith("*")
    assert not cell(table, "student", "64 tokens").endswith("*")
    assert not cell(table, "teacher", "128 tokens").endswith("*")
    assert "cut by it" in table.reading


def test_a_name_is_no_markup(make_report: Make) -> None:
    assert "[red]a[/red]" in in_terminal(make_report(2, processes=2, names=("[red]a[/red]", "b")))


def test_markdown_holds_the_same_tables(report: BenchReport) -> None:
    shown = contents(report)
    markdown = report_markdown(report)
    assert parsed_tables(markdown) == [
        [list(table.columns), *(list(row) for row in table.rows)] for table in shown.tables
    ]
    assert markdown.endswith("\n")


def test_a_name_in_markdown_is_shown_as_it_is(make_report: Make) -> None:
    names = ("a|b `c` *d* <e> [f](g) _h_ \\", "two\nlines & co")
    tables = parsed_tables(report_markdown(make_report(2, processes=2, names=names)))
    for table in tables:
        assert [row[0] for row in table[1:]] == [names[0], "two lines & co"]
