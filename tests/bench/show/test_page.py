import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from edgeembed_bench.report import BenchReport
from edgeembed_bench.show import report_page
from edgeembed_bench.show.contents import contents

Make = Callable[..., BenchReport]

# What has no end tag in HTML.
VOID = {"meta", "br", "link", "img"}
NAMES = ("<script>alert(1)</script>", '"a" & $b$ id="c" _', "日本語 🙂")


class Page(HTMLParser):
    """A page's elements and text; fails where the elements are not nested."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


@pytest.fixture(scope="module")
def source(report: BenchReport) -> str:
    return report_page(report)


def test_the_page_asks_for_nothing_from_elsewhere(source: str) -> None:
    page = Page(source)
    assert not {"script", "link", "img", "iframe", "object", "embed"} & {tag for tag, _ in page.elements}
    assert not re.findall(r"https?:|//\w|@import|url\((?!#)", source)
    for _, attributes in page.elements:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")


def test_ids_are_unique_and_what_refers_to_one_finds_it(wide_report: BenchReport) -> None:
    source = report_page(wide_report)
    counts = Counter(attributes["id"] for _, attributes in Page(source).elements if "id" in attributes)
    assert max(counts.values()) == 1
    referred = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)|aria-labelledby="([^"]+)"', source)
    assert {name for names in referred for name in names if name} == counts.keys()


def test_the_page_has_all_plots_and_the_rows_of_all_tables(report: BenchReport, source: str) -> None:
    page, shown = Page(source), contents(report)
    assert page.count("figure") == 5
    assert sum(attributes.get("role") == "img" for _, attributes in page.elements) == 5
    for table in shown.tables:
        for row in table.rows:
            assert all(figure in page.text for figure in row)
    for lines in shown.notes.values():
        assert all(line in page.text.replace("\xa0", " ") for line in lines)
    assert shown.findings["student"] in page.text.replace("\xa0", " ")


def test_files_are_given_with_their_hashes(source: str) -> None:
    assert "onnx/model.onnx" in source
    assert "ab" * 32 in source


def test_a_plot_without_figures_says_how_to_get_them(bare_report: BenchReport) -> None:
    page = Page(report_page(bare_report))
    assert page.count("figure") == 4
    assert sum(attributes.get("role") == "img" for _, attributes in page.elements) == 1
    assert "Quality was not measured: give --sts or --retrieval" in page.text
    assert "Not measured: no RAPL counter" in page.text
    assert "Read with care" in page.text


def test_names_are_text_wherever_they_are(make_report: Make) -> None:
    page = Page(report_page(make_report(3, processes=2, names=NAMES)))
    assert not {"script", "b"} & {tag for tag, _ in page.elements}
    for name in NAMES:
        # In the findings, a table, a plot and its legend.
        assert page.text.count(name) > 4


def test_a_name_too_long_for_a_plot_is_whole_in_the_tables(make_report: Make) -> None:
    name = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2, exported"
    page = Page(report_page(make_report(1, processes=2, names=(name,))))
    assert name in page.text
    assert f"{name[:20]}" in page.text
    assert "…" in page.text


def test_more_subjects_than_colours_still_look_unlike_each_other() -> None:
    from edgeembed_bench.show.plots.series import look

    assert len({look(position) for position in range(64)}) == 64


def test_the_same_report_gives_the_same_page(report: BenchReport, source: str) -> None:
    assert report_page(report) == source


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_and_series_stand_out_from_the_background(source: str, scheme: int) -> None:
    sheets = re.findall(r":root \{(.*?)\}", source, flags=re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6});", sheets[scheme]))
    for paper in ("paper", "card"):
        assert contrast(colours["ink"], colours[paper]) > 12
        assert contrast(colours["muted"], colours[paper]) > 5
        for series in range(1, 9):
            assert contrast(colours[f"series-{series}"], colours[paper]) > 4


def contrast(one: str, other: str) -> float:
    """Contrast as the guidelines for accessible pages count it: 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
