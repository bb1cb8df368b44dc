"""A figure with a row for each subject: its name and its figure above, what is drawn of it below."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from edgeembed_bench.show.plots.canvas import POINTS_AN_INCH, TEXT, WIDTH
from edgeembed_bench.show.plots.series import MUTED, look
from edgeembed_bench.show.plots.texts import fit, shown, write

_LEAST_ROW = 42.0  # units
_MOST_ROW = 70.0
_WHOLE = 210.0  # what few rows share, so that they are no thin strip beside other plots
_FRAME = 42.0
_TEXT_STARTS = 15  # right of the marker
BAR = 0.3  # of a row


def rows_height(rows: int) -> float:
    """Give the height of a figure of so many rows, in units."""
    return _FRAME + rows * min(max(_WHOLE / rows, _LEAST_ROW), _MOST_ROW)


def row_axes(figure: Figure, subjects: Sequence[tuple[int, str, str]], axis: str) -> Axes:
    """Make axes with a row for each subject; the first row, on top, is at 0, the next at 1.

    Args:
        figure: The empty figure.
        subjects: Position in the report, name, and what is written at the end of the row.
        axis: What the axis below is, with its unit.
    """
    axes = figure.subplots()
    axes.set_ylim(len(subjects) - 0.6, -0.75)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(axis)
    for row, (position, name, text) in enumerate(subjects):
        _head(axes, row - BAR * 0.8, position, name, text)
    return axes


def _head(axes: Axes, height: float, position: int, name: str, text: str) -> None:
    across = axes.get_yaxis_transform()
    placed = {"xycoords": across, "textcoords": "offset points", "va": "bottom"}
    figure = write(axes, text, (1, height), xytext=(0, 0), ha="right", color=MUTED, **placed)
    room = WIDTH - figure.get_window_extent().width - _TEXT_STARTS - 2 * TEXT
    label = write(axes, shown(name), (0, height), xytext=(_TEXT_STARTS, 0), ha="left", **placed)
    fit(label, room)
    chosen = look(position)
    raised = across + ScaledTranslation(5 / POINTS_AN_INCH, TEXT / 2 / POINTS_AN_INCH, axes.figure.dpi_scale_trans)
    axes.plot(
        0, height, marker=chosen.marker, markersize=7, color=chosen.colour, transform=raised, clip_on=False, zorder=3
    )
