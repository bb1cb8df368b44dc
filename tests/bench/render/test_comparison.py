import io
from collections.abc import Callable
from dataclasses import replace

from edgeembed_bench import BenchmarkReport, compare_reports
from edgeembed_bench.render import markdown_comparison, terminal_comparison
from rich.console import Console

Make = Callable[..., BenchmarkReport]


def test_comparison_shows_both_values_and_how_to_read_the_ratios(make_report: Make) -> None:
    comparison = compare_reports(make_report(2), make_report(2))
    output = io.StringIO()
    Console(file=output, width=80).print(terminal_comparison(comparison))
    markdown = markdown_comparison(comparison)
    for text in (output.getvalue(), markdown):
        assert "7.4 → 7.4" in text
        assert "adjusted ratio" in text
        assert "drift of the machine" in " ".join(text.split())
    assert markdown.startswith("# Benchmark comparison\n")
    assert max(map(len, output.getvalue().splitlines())) <= 80


def test_comparison_lists_differences_of_machine_and_subjects(make_report: Make) -> None:
    before, after = make_report(3), make_report(2)
    unlike = replace(after, machine=replace(after.machine, governor="powersave"))
    markdown = markdown_comparison(compare_reports(before, unlike, allow_unlike=True))
    assert "- machine or settings differ: governor: None and powersave" in markdown
    assert "- only before: student-int4" in markdown
