import io
import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from edgeembed_bench.energy import Energy
from edgeembed_bench.machine import Load
from edgeembed_bench.render import Table, terminal_report, terminal_tables
from edgeembed_bench.render.summary import build_content
from edgeembed_bench.report import BenchmarkReport
from markdown_it import MarkdownIt
from rich.console import Console

Make = Callable[..., BenchmarkReport]


def in_terminal(report: BenchmarkReport, width: int = 100) -> str:
    written = io.StringIO()
    Console(file=written, width=width).print(terminal_report(report))
    return written.getvalue()


def cell(table: Table, subject: str, column: str) -> str:
    (row,) = (row for row in table.rows if row[0] == subject)
    return row[table.columns.index(column)]


def parsed_tables(markdown: str) -> list[list[list[str]]]:
    """Return the cells of each table of a document, parsed by a Markdown library."""
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


def test_every_table_has_a_row_per_subject(report: BenchmarkReport) -> None:
    tables = build_content(report).tables
    assert [table.title for table in tables] == [
        *("Overview", "Size", "Latency", "Latency by length", "Cold start", "Memory", "Energy", "Quality")
    ]
    for table in tables:
        assert [row[0] for row in table.rows] == ["teacher", "student"]
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_cells_hold_the_values_of_the_report(report: BenchmarkReport) -> None:
    tables = {table.title: table for table in build_content(report).tables}
    overview, student = tables["Overview"], report["student"]
    assert cell(overview, "student", "MB") == "7.4"
    assert float(cell(overview, "student", "ms")) == pytest.approx(student.latency.median, rel=0.01)
    assert float(cell(overview, "student", "ratio")) == pytest.approx(report.latency_ratio("student").value, rel=0.02)
    assert cell(overview, "student", "quality") == f"{report.quality_percent('student'):.0f} %"
    assert cell(tables["Energy"], "student", "mJ") == "12.5"
    assert cell(tables["Energy"], "student", "above idle mJ") == "7.5"
    assert cell(tables["Size"], "student", "deps MB") == "104"
    assert cell(tables["Quality"], "student", "STS-B Spearman") == "69.3"


def test_baseline_is_not_compared_with_itself(report: BenchmarkReport) -> None:
    overview = build_content(report).tables[0]
    assert cell(overview, "teacher", "difference") == cell(overview, "teacher", "95 % CI") == "-"
    assert cell(overview, "student", "difference") == "faster"


def test_untested_and_undetected_differences_are_named(make_report: Make) -> None:
    few = build_content(make_report(2, processes=3)).tables[0]
    assert cell(few, "student", "difference") == "not tested"
    report = make_report(1)
    twin = replace(report.subjects[0], subject=replace(report.subjects[0].subject, name="twin"))
    alike = build_content(replace(report, subjects=(*report.subjects, twin))).tables[0]
    assert cell(alike, "twin", "difference") == "none detected"


def test_missing_measurements_have_no_table_and_no_column(bare_report: BenchmarkReport) -> None:
    tables = {table.title: table for table in build_content(bare_report).tables}
    assert not {"Energy", "Quality", "Memory", "Latency by length"} & tables.keys()
    assert "texts/s" not in tables["Overview"].columns
    assert "tokenize ms" not in tables["Latency"].columns
    assert "tokenize" not in tables["Latency"].legend


def test_missing_energy_of_one_subject_is_never_zero(report: BenchmarkReport) -> None:
    teacher, student = report.subjects
    lacking = replace(student, energy=Energy(None, None, (), "the counter stood still"))
    markdown = replace(report, subjects=(teacher, lacking)).to_markdown()
    (energy,) = (table for table in parsed_tables(markdown) if "mJ" in table[0])
    row = dict(zip(energy[0], energy[2], strict=True))
    assert row["mJ"] == row["above idle mJ"] == "not measured"
    assert row["idle W"] == "-"
    assert markdown.count("the counter stood still") == 1
    assert "energy of student: the counter stood still" in markdown


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_terminal_never_cuts_a_cell_or_a_header(wide_report: BenchmarkReport, width: int) -> None:
    shown = in_terminal(wide_report, width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    words = set(shown.split())
    for table in build_content(wide_report).tables:
        for column, *figures in list(zip(table.columns, *table.rows, strict=True))[1:]:
            assert {word for text in (column, *figures) for word in text.split()} <= words, (table.title, column)


def test_headers_take_one_line_at_80_columns(wide_report: BenchmarkReport) -> None:
    lines = in_terminal(wide_report, 80).splitlines()
    headers = [line for line, rule in itertools.pairwise(lines) if rule.strip("─ ") == "" and "─" in rule]
    for table in build_content(wide_report).tables:
        for column in table.columns[1:]:
            assert any(f" {column} " in f"{header} " for header in headers), (table.title, column)


def test_header_wider_than_the_terminal_wraps() -> None:
    output = io.StringIO()
    header = "a very long header that no narrow terminal holds"
    table = Table("Scores", ("subject", header), (("student", "1"),), "")
    Console(file=output, width=30).print(terminal_tables([table]))
    assert max(map(len, output.getvalue().splitlines())) <= 30
    assert set(header.split()) <= set(output.getvalue().split())


def test_terminal_ends_and_markdown_starts_with_the_summary(report: BenchmarkReport) -> None:
    noisy = replace(report, load=Load(3.0, 0.0, None))
    sentences, warnings = list(build_content(noisy).summary.values()), build_content(noisy).warnings
    terminal = " ".join(in_terminal(noisy, 80).split())
    assert terminal.endswith(f"Warnings {' '.join(warnings)} Summary {' '.join(sentences)}")
    markdown = report.to_markdown()
    assert markdown.startswith("# Benchmark report\n\n" + "\n".join(f"- {line}" for line in sentences) + "\n\n")


def test_metric_of_a_task_moves_to_the_legend_where_headers_stay_unique(make_report: Make) -> None:
    report = make_report(1)
    tasks = {"stsb/dev (Spearman x100)": 80.0, "quora (F1)": 70.0, "quora (accuracy)": 60.0}
    scored = replace(report, subjects=(replace(report.subjects[0], quality=tasks),))
    (table,) = (table for table in build_content(scored).tables if table.title == "Quality")
    assert table.columns[1:4] == ("stsb/dev", "quora (F1)", "quora (accuracy)")
    assert "stsb/dev: Spearman x100" in table.legend


def test_truncated_lengths_are_marked(report: BenchmarkReport) -> None:
    teacher, student = report.subjects
    short = replace(report, subjects=(teacher, replace(student, info=replace(student.info, max_tokens=64))))
    (table,) = (table for table in build_content(short).tables if table.title == "Latency by length")
    assert cell(table, "student", "128").endswith("*")
    assert not cell(table, "student", "64").endswith("*")
    assert not cell(table, "teacher", "128").endswith("*")
    assert "truncated" in table.legend


def test_names_are_not_parsed_as_rich_markup(make_report: Make) -> None:
    assert "[red]a[/red]" in in_terminal(make_report(2, processes=2, names=("[red]a[/red]", "b")))


def test_markdown_has_the_same_tables(report: BenchmarkReport) -> None:
    shown = build_content(report)
    markdown = report.to_markdown()
    assert parsed_tables(markdown) == [
        [list(table.columns), *(list(row) for row in table.rows)] for table in shown.tables
    ]
    assert markdown.endswith("\n")


def test_names_are_escaped_in_markdown(make_report: Make) -> None:
    names = ("a|b `c` *d* <e> [f](g) _h_ \\", "two\nlines & co")
    tables = parsed_tables(make_report(2, processes=2, names=names).to_markdown())
    for table in tables:
        assert [row[0] for row in table[1:]] == [names[0], "two lines & co"]
