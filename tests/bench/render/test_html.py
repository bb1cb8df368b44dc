import base64
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from edgeembed_bench.render.summary import build_content
from edgeembed_bench.render.svg import DARK, LIGHT
from edgeembed_bench.report import BenchmarkReport

Make = Callable[..., BenchmarkReport]

SVG = "{http://www.w3.org/2000/svg}"
# Elements without an end tag.
VOID = {"meta", "br", "link", "img"}
NAMES = ("<script>alert(1)</script>", '"a" & $b$ id="c" _', "日本語 🙂")


class Page(HTMLParser):
    """Elements and text of a page; fails if elements are not nested properly."""

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
def source(report: BenchmarkReport) -> str:
    return report.to_html()


def images(page: Page) -> list[tuple[str, str]]:
    """Return class and decoded SVG of all images of plots."""
    decoded = []
    for tag, attributes in page.elements:
        kind, _, data = (attributes.get("src") or "").partition(",")
        if tag == "img" and attributes.get("alt"):
            assert kind == "data:image/svg+xml;base64"
            decoded.append((attributes["class"] or "", base64.b64decode(data).decode()))
    return decoded


def texts(svg: str) -> list[str]:
    """Return the texts in an SVG document, which has to be well-formed."""
    document = ElementTree.fromstring(svg)  # noqa: S314  # written by this test's own page
    return ["".join(element.itertext()) for element in document.iter(f"{SVG}text")]


def test_page_loads_no_other_files(source: str) -> None:
    page = Page(source)
    assert not {"script", "link", "iframe", "object", "embed"} & {tag for tag, _ in page.elements}
    assert not re.findall(r"https?:|//\w|@import|url\(", re.sub(r'src="data:[^"]*"', "", source))
    for _, attributes in page.elements:
        assert (attributes.get("src") or "data:").startswith("data:")
        assert (attributes.get("href") or "#").startswith("#")
    for _, svg in images(page):
        urls = re.findall(r'(?:href="|url\()([^)"]+)', svg)
        assert all(url.startswith("#") for url in urls)
        assert "<script" not in svg


def test_ids_are_unique_and_references_resolve(source: str) -> None:
    counts = Counter(attributes["id"] for _, attributes in Page(source).elements if "id" in attributes)
    assert max(counts.values()) == 1
    assert set(re.findall(r'aria-labelledby="([^"]+)"', source)) == counts.keys()


def test_page_starts_with_the_summary_and_has_all_plots_and_tables(report: BenchmarkReport, source: str) -> None:
    page, content = Page(source), build_content(report)
    assert "Warnings" not in page.text
    text = " ".join(page.text.replace("\xa0", " ").split())
    start = text.index("1 thread")
    assert text[start:].startswith(f"1 thread {' '.join(content.summary.values())} ")
    assert page.count("figure") == 5
    assert len(images(page)) == 10
    for table in content.tables:
        for row in table.rows:
            assert all(cell in page.text for cell in row)
    for lines in content.notes.values():
        assert all(line in text for line in lines)


def test_plots_come_in_a_light_and_a_dark_style_with_the_same_text(source: str) -> None:
    pairs = images(Page(source))
    for (light, light_svg), (dark, dark_svg) in zip(pairs[::2], pairs[1::2], strict=True):
        assert (light, dark) == ("light", "dark")
        assert texts(light_svg) == texts(dark_svg)
        assert LIGHT.muted in light_svg
        assert LIGHT.muted not in dark_svg
        assert DARK.muted in dark_svg


def test_logarithmic_axes_and_the_range_of_quality_axes_are_stated(source: str) -> None:
    by_plot = [" | ".join(texts(svg)) for scheme, svg in images(Page(source)) if scheme == "light"]
    size, latency, distribution, length, energy = by_plot
    for plot, label in (
        (size, "size on disk in MB"),
        (latency, "median latency in ms"),
        (distribution, "latency in ms"),
    ):
        assert f"{label} (log scale)" in plot
    assert "tokens (log scale)" in length
    assert "latency in ms (log scale)" in length
    assert "log" not in energy
    for plot in (size, latency):
        # Scores of 66.5 and 63.3: on an axis that fits them tightly, three points would fill the whole axis.
        assert "mean quality score (axis from 50 to 70)" in plot
        assert {"50", "60", "70"} <= set(plot.split(" | "))


def test_plots_have_a_legend(source: str) -> None:
    for scheme, svg in images(Page(source)):
        assert {"teacher", "student"} <= set(texts(svg)), scheme


def test_files_are_listed_with_their_checksums(source: str) -> None:
    assert "onnx/model.onnx" in source
    assert "ab" * 32 in source


def test_missing_plot_says_how_to_measure_it(bare_report: BenchmarkReport) -> None:
    page = Page(bare_report.to_html())
    assert page.count("figure") == 4
    assert len(images(page)) == 2
    assert "Quality was not measured: pass --sts or --retrieval" in page.text
    assert "Not measured: no RAPL counter" in page.text
    assert "Warnings" in page.text


def test_names_are_plain_text_everywhere(make_report: Make) -> None:
    page = Page(make_report(3, processes=2, names=NAMES).to_html())
    assert not {"script", "b"} & {tag for tag, _ in page.elements}
    for name in NAMES:
        assert page.text.count(name) > 4  # in the summary and the tables
        assert all(name in texts(svg) for _, svg in images(page))


def test_long_name_is_shortened_only_in_plots(make_report: Make) -> None:
    name = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2, exported"
    page = Page(make_report(1, processes=2, names=(name,)).to_html())
    assert name in page.text
    assert "…" not in page.text
    for _, svg in images(page):
        assert any(text.startswith(name[:20]) and text.endswith("…") for text in texts(svg))


def test_same_report_renders_to_the_same_page(report: BenchmarkReport, source: str) -> None:
    assert report.to_html() == source
