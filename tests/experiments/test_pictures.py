"""Pictures of quality against cost."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from edgeembed_bench import read_report
from edgeembed_bench.render.tradeoff import Point

from experiments.pictures import PICTURES, REPORT, Picture, build_pictures, command, draw_picture

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = Picture(
    "name",
    "Size & quality",
    "size",
    "MB",
    (Point(1, "mini", 5.2, 97), Point(0, "teacher", 91, 100), Point(0, "like it", 90, 99)),
)


@pytest.mark.parametrize("picture", build_pictures(read_report(REPORT)), ids=lambda picture: picture.name)
def test_the_committed_picture_shows_the_committed_report(picture: Picture) -> None:
    root = ElementTree.parse(PICTURES / f"{picture.name}.svg").getroot()  # noqa: S314  # a file of the repository
    message = "the report has changed: run python -m experiments.pictures"
    assert root.findtext(f"{SVG}desc") == picture.description, message
    assert {point.name for point in picture.points} <= set(texts(root)), message


def test_a_picture_says_what_it_shows_and_that_its_axis_is_logarithmic() -> None:
    root = ElementTree.fromstring(draw_picture(PICTURE))  # noqa: S314
    assert root.findtext(f"{SVG}title") == "Size & quality"
    assert "mini: 5.2 MB, 97.0 %" in (root.findtext(f"{SVG}desc") or "")
    shown = texts(root)
    assert "size in MB (logarithmic axis)" in shown
    assert any("axis from 80 to 100" in text for text in shown)
    assert {"mini", "teacher", "like it"} <= set(shown)


def test_the_same_picture_is_the_same_file_and_small() -> None:
    svg = draw_picture(PICTURE)
    assert svg == draw_picture(PICTURE)
    assert len(svg) < 30_000


def test_a_picture_has_dark_colors_and_loads_nothing() -> None:
    svg = draw_picture(PICTURE)
    assert "prefers-color-scheme:dark" in svg
    assert "url(http" not in svg
    assert 'href="http' not in svg


def test_the_command_writes_both_pictures(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--out", str(tmp_path / "new")])
    assert done.exit_code == 0, done.output
    assert {file.name for file in (tmp_path / "new").iterdir()} == {"quality-size.svg", "latency-quality.svg"}


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]
