"""Pages of results that are filled from reports."""

import pytest
from edgeembed_bench import read_report

from experiments.result_pages import BEGIN, END, PAGES, RESULTS, ResultPage, fill_page
from experiments.score_tables import fill_tables, pages_of_scores

BENCH = PAGES[0]


@pytest.mark.parametrize("page", [page for page in PAGES if page.report.is_file()], ids=lambda page: page.name)
def test_the_committed_page_shows_the_committed_report(page: ResultPage) -> None:
    text = page.page.read_text(encoding="utf-8")
    message = "the report has changed: run python -m experiments.result_pages"
    assert fill_page(text, page, read_report(page.report)) == text, message


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_can_be_filled(page: ResultPage) -> None:
    filled = fill_page(page.page.read_text(encoding="utf-8"), page, read_report(BENCH.report))
    assert "- teacher (baseline) has a median latency of " in filled
    generated = filled.partition(BEGIN)[2].partition(END)[0]
    assert max(len(line) for line in generated.splitlines() if not line.startswith("|")) <= 160


def test_the_generated_part_replaces_what_is_between_the_marks() -> None:
    filled = fill_page(f"# Title\n\n{BEGIN}\nold\n{END}\n\nText.\n", BENCH, read_report(BENCH.report))
    assert filled.startswith(f"# Title\n\n{BEGIN}\n\n- teacher (baseline) has ")
    assert filled.endswith(f"\n\n{END}\n\nText.\n")
    assert "old" not in filled
    assert "### Overview\n\n| subject" in filled
    assert "### This run\n\n- " in filled


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}\n{BEGIN}"])
def test_a_page_without_the_marks_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"bench\.md lacks a mark"):
        fill_page(text, BENCH, read_report(BENCH.report))


@pytest.mark.parametrize("name", pages_of_scores())
def test_the_tables_of_a_page_show_the_committed_scores(name: str) -> None:
    text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    message = "the scores have changed: run python -m experiments.result_pages"
    assert fill_tables(text, pages_of_scores()[name]) == text, message


def test_a_page_without_the_mark_of_a_table_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"simtde\.md lacks a mark"):
        fill_tables("# Title\n", pages_of_scores()["simtde"])
