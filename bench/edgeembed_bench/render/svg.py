"""Figures as SVG images, drawn once in a light and once in a dark matplotlib style."""

import base64
import io
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cycler import cycler
from matplotlib import rcParams, style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

WIDTH = 340.0  # points; narrow enough for the smallest phones, where text is then at least 11 pixels high
TEXT_SIZE = 12.5  # points
POINTS_PER_INCH = 72
_MIN_DECADE_SPAN = 5.0  # a logarithmic axis spans at least this factor, so that it has two ticks
_MAX_NAME_LENGTH = 28
_LEGEND_LINE = 18.0  # points
_LEGEND_HANDLE = 52.0  # points for a marker and the gaps beside it
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True)
class ColorScheme:
    """Colors of the page and of its plots, as hexadecimal RGB.

    Attributes:
        paper: Background of the page.
        card: Background of plots and tables.
        ink: Text.
        muted: Secondary text and axes.
        grid: Grid lines.
        edge: Borders.
        warning: Background of warnings.
        warning_edge: Border of warnings.
        series: One color per subject, repeated after the last.
    """

    paper: str
    card: str
    ink: str
    muted: str
    grid: str
    edge: str
    warning: str
    warning_edge: str
    series: tuple[str, ...]

    @property
    def style(self) -> dict[str, Any]:
        """The matplotlib style of the scheme's figures."""
        return {
            "axes.axisbelow": True,
            "axes.edgecolor": self.muted,
            "axes.facecolor": "none",
            "axes.grid": True,
            "axes.labelcolor": self.muted,
            "axes.labelsize": TEXT_SIZE,
            "axes.linewidth": 0.8,
            "axes.prop_cycle": cycler(color=self.series),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": self.muted,
            "axes.titlelocation": "left",
            "axes.titlesize": TEXT_SIZE,
            "figure.dpi": POINTS_PER_INCH,
            "figure.facecolor": "none",
            # matplotlib measures text in the first font, which comes with it and is wider than the others.
            "font.family": ["DejaVu Sans", "sans-serif"],
            "font.sans-serif": ["Segoe UI", "Helvetica Neue", "Arial", "DejaVu Sans"],
            "font.size": TEXT_SIZE,
            "grid.color": self.grid,
            "grid.linewidth": 0.8,
            "legend.fontsize": TEXT_SIZE,
            "savefig.facecolor": "none",
            "svg.fonttype": "none",
            "svg.hashsalt": "edgeembed",  # the same figure has the same ids
            "text.color": self.ink,
            "xtick.color": self.muted,
            "xtick.labelsize": TEXT_SIZE,
            "xtick.major.pad": 6,  # keeps the lowest label of the y axis and the first of the x axis apart
            "ytick.color": self.muted,
            "ytick.labelsize": TEXT_SIZE,
        }


LIGHT = ColorScheme(
    paper="#fbfaf8",
    card="#ffffff",
    ink="#1d1f23",
    muted="#5b606b",
    grid="#e6e4df",
    edge="#dedbd4",
    warning="#fdf3dc",
    warning_edge="#c98a00",
    series=("#0067b1", "#cc4a00", "#007d5a", "#b5358c", "#8a6a00", "#6b4fd0", "#3d7d8c", "#6e6e6e"),
)
DARK = ColorScheme(
    paper="#15171b",
    card="#1d2025",
    ink="#eceae6",
    muted="#a5abb6",
    grid="#30343b",
    edge="#343941",
    warning="#2d2618",
    warning_edge="#e0a52e",
    series=("#5cb3f5", "#ff8c4d", "#35cf9f", "#f289cd", "#e3c44a", "#a996ff", "#86cfdd", "#b9b9b9"),
)


@dataclass(frozen=True)
class Image:
    """One figure in both color schemes.

    Attributes:
        light: The light SVG as a data URI.
        dark: The dark SVG as a data URI.
        width: Width in pixels.
        height: Height in pixels.
    """

    light: str
    dark: str
    width: int
    height: int


def draw(paint: Callable[[Figure], None], height: float, width: float = WIDTH) -> Image:
    """Draw a figure in both color schemes.

    Args:
        paint: Function that draws on the empty figure; it may change the figure's height.
        height: Initial height in points.
        width: Width in points.

    Returns:
        The images.
    """
    light, size = _draw(paint, (width, height), LIGHT)
    dark, _ = _draw(paint, (width, height), DARK)
    return Image(light, dark, *size)


def draw_marker(position: int) -> Image:
    """Draw the marker of a subject, for use in text.

    Args:
        position: Position of the subject in the report.

    Returns:
        A square image.
    """

    def paint(figure: Figure) -> None:
        figure.add_artist(Line2D([0.5], [0.5], marker=marker(position), markersize=10, color=color(position)))

    return draw(paint, 16, 16)


def color(position: int) -> str:
    """Return the color of the subject at a position, as a reference into the current style."""
    return f"C{position % len(LIGHT.series)}"


def marker(position: int) -> str:
    """Return the marker of the subject at a position; color and marker together repeat after 64 subjects."""
    rounds, column = divmod(position, len(LIGHT.series))
    return _MARKERS[(column + rounds) % len(_MARKERS)]


def ink() -> str:
    """Return the text color of the current style."""
    return str(rcParams["text.color"])


def muted() -> str:
    """Return the axis color of the current style."""
    return str(rcParams["axes.edgecolor"])


def printable(name: str) -> str:
    """Return a subject's name without control characters, at most 28 characters long."""
    return _shorten("".join(letter if letter.isprintable() else " " for letter in name), _MAX_NAME_LENGTH)


def write(axes: Axes, text: str, place: tuple[float, float], **options: Any) -> Text:
    """Write literal text, in which a dollar sign does not start a formula.

    Args:
        axes: The axes.
        text: The text.
        place: The anchor (x, y), in data coordinates unless the option `xycoords` is set.
        options: As for `Axes.annotate`.

    Returns:
        The text artist.
    """
    defaults: dict[str, Any] = {"color": ink(), "annotation_clip": False, "parse_math": False}
    return axes.annotate(text, place, **(defaults | options))


def fit(text: Text, width: float) -> None:
    """Shorten text in place until it is at most `width` points wide."""
    while text.get_window_extent().width > width and len(text.get_text()) > 2:
        text.set_text(_shorten(text.get_text(), len(text.get_text()) - 1))


def add_legend(figure: Figure, names: Sequence[str], positions: Sequence[int]) -> None:
    """Add a legend of subjects below a figure, and increase the figure's height for it.

    Args:
        figure: The figure, with constrained layout.
        names: Names of the subjects.
        positions: Their positions in the report.
    """
    texts = [printable(name) for name in names]
    columns = 2 if max(map(len, texts)) <= 18 else 1
    lines = -(-len(texts) // columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + (lines * _LEGEND_LINE + 14) / POINTS_PER_INCH)
    handles = [Line2D([], [], color=color(each), marker=marker(each), markersize=7) for each in positions]
    legend = figure.legend(
        handles,
        [str(position) for position in positions],
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        borderpad=0.4,
        handlelength=1.6,
        labelspacing=0.3,
    )
    for entry, text in zip(legend.get_texts(), texts, strict=True):
        # Set after `legend`, which skips labels that start with an underscore.
        entry.set_parse_math(False)
        entry.set_text(text)
        fit(entry, WIDTH / columns - _LEGEND_HANDLE)


def _draw(
    paint: Callable[[Figure], None], size: tuple[float, float], scheme: ColorScheme
) -> tuple[str, tuple[int, int]]:
    # Starting from "default", the figure does not depend on the user's own style.
    with style.context(["default", scheme.style]), warnings.catch_warnings():
        # The browser draws the text, with fonts for characters that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(size[0] / POINTS_PER_INCH, size[1] / POINTS_PER_INCH), layout="constrained")
        paint(figure)
        output = io.BytesIO()
        figure.savefig(output, format="svg", metadata={"Creator": None, "Date": None, "Format": None, "Type": None})
        width, height = (round(float(inches) * POINTS_PER_INCH) for inches in figure.get_size_inches())
    return f"data:image/svg+xml;base64,{base64.b64encode(output.getvalue()).decode()}", (width, height)


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text.rstrip('…')[: length - 1]}…"


def log_limits(values: Sequence[float], room: float = 1.25) -> tuple[float, float]:
    """Choose the ends of a logarithmic axis.

    Args:
        values: The values to show, positive.
        room: Factor by which the ends exceed the values.

    Returns:
        The ends, at least a factor of 5 apart.
    """
    low, high = min(values) / room, max(values) * room
    factor = max(math.sqrt(_MIN_DECADE_SPAN * low / high), 1)
    return low / factor, high * factor


def set_log_scale(axes: Axes, name: Literal["x", "y"], limits: tuple[float, float]) -> None:
    """Make an axis logarithmic, with plain numbers as tick labels and fewer ticks per decade on a long axis.

    Args:
        axes: The axes.
        name: The axis.
        limits: The ends of the axis.
    """
    decades = math.log10(limits[1] / limits[0])
    steps = (1, 2, 5) if decades < 2 else (1, 3) if decades < 3 else (1,)
    axes.set(**{f"{name}scale": "log", f"{name}lim": limits})
    axis = axes.xaxis if name == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=steps, numticks=30))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
