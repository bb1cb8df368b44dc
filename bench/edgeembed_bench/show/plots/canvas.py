"""From a figure to SVG that lives in a page: its text in the page's font, its colours those of the page."""

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgeembed_bench.show.plots.series import GRID, INK, MUTED, VARIABLES, look

WIDTH = 340  # units; on the narrowest phone these are as many pixels, less a few, so that text stays above 11
TEXT = 12.5
POINTS_AN_INCH = 72  # a unit of an SVG by matplotlib is a point
_FONT = "DejaVu Sans"  # comes with matplotlib; wider than most, so that what fits in it fits in the page's
_STYLE: dict[str, Any] = {
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": MUTED,
    "axes.labelsize": TEXT,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "figure.dpi": POINTS_AN_INCH,
    "figure.facecolor": "none",
    "font.family": [_FONT],
    "font.size": TEXT,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.fontsize": TEXT,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelsize": TEXT,
    "ytick.color": MUTED,
    "ytick.labelsize": TEXT,
}


def drawn(name: str, height: float, paint: Callable[[Figure], None]) -> str:
    """Draw a figure.

    Args:
        name: What the ids in it begin with; another for each figure of a page.
        height: Its height in units, of which `WIDTH` are as wide as it.
        paint: Puts the axes and all in them on the empty figure.

    Returns:
        An SVG element for a page of HTML.
    """
    with _own_style(name):
        figure = Figure(figsize=(WIDTH / POINTS_AN_INCH, height / POINTS_AN_INCH), layout="constrained")
        paint(figure)
        return _inline(_svg(figure), name)


def swatch(position: int) -> str:
    """Draw a subject's marker alone.

    Args:
        position: The subject's position in the report.
    """
    name = f"swatch-{position}"
    with _own_style(name):
        figure = Figure(figsize=(16 / POINTS_AN_INCH, 16 / POINTS_AN_INCH))
        chosen = look(position)
        figure.add_artist(Line2D([0.5], [0.5], marker=chosen.marker, markersize=10, color=chosen.colour))
        return _inline(_svg(figure), name)


@contextmanager
def _own_style(salt: str) -> Iterator[None]:
    # Whatever style the user keeps for their own figures, a report looks the same.
    with style.context(["default", _STYLE | {"svg.hashsalt": salt}]), warnings.catch_warnings():
        # The page's font has the letters that matplotlib's lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _svg(figure: Figure) -> ElementTree.Element:
    written = io.BytesIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    return ElementTree.fromstring(written.getvalue())  # noqa: S314  # matplotlib wrote it, not a stranger


def _inline(svg: ElementTree.Element, name: str) -> str:
    content = [_without_namespaces(child) for child in svg if not child.tag.endswith("metadata")]
    inline = ElementTree.Element("svg", {"viewBox": svg.attrib["viewBox"], "aria-hidden": "true"})
    inline.extend(content)
    for parent in list(inline.iter()):
        # A style sheet in a figure would be one for the whole page.
        for sheet in parent.findall("style"):
            parent.remove(sheet)
    used = set(re.findall(r'(?:"|url\()#([^")]+)', ElementTree.tostring(inline, encoding="unicode")))
    for element in inline.iter():
        _adapt(element, name, used)
    return ElementTree.tostring(inline, encoding="unicode")


def _without_namespaces(element: ElementTree.Element) -> ElementTree.Element:
    for each in element.iter():
        each.tag = each.tag.rpartition("}")[2]
        for key in [key for key in each.attrib if "}" in key]:
            each.attrib[key.rpartition("}")[2]] = each.attrib.pop(key)
    return element


def _adapt(element: ElementTree.Element, name: str, used: set[str]) -> None:
    attributes = element.attrib
    if attributes.get("id") not in used:
        attributes.pop("id", None)
    for key, value in attributes.items():
        if key == "id":
            attributes[key] = f"{name}-{value}"
        elif key == "href":
            attributes[key] = value.replace("#", f"#{name}-")
        elif key == "clip-path":
            attributes[key] = value.replace("url(#", f"url(#{name}-")
        elif key == "style":
            attributes[key] = _page_style(value)


def _page_style(text: str) -> str:
    text = text.replace(f"'{_FONT}'", "var(--font)")
    return re.sub(r"#fe00\w\w", lambda found: VARIABLES[found[0]], text)
