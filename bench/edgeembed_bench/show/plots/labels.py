"""Names beside points, where there is room for them."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from edgeembed_bench.show.plots.texts import write

# Right of the point, left, above, below: how the text stands to it, and how far.
_PLACES = (
    ("left", "center", (8, 0)),
    ("right", "center", (-8, 0)),
    ("center", "bottom", (0, 7)),
    ("center", "top", (0, -7)),
    ("left", "bottom", (3, 6)),
    ("right", "bottom", (-3, 6)),
    ("left", "top", (3, -6)),
    ("right", "top", (-3, -6)),
)
_MARKER = 5.5  # from its middle to its edge


def label_points(axes: Axes, points: Sequence[tuple[float, float]], names: Sequence[str]) -> bool:
    """Write a name beside each point: no name over another, over a point, or over a line that the axes hold.

    Args:
        axes: Where; its limits are settled.
        points: The points.
        names: The names, one a point.

    Returns:
        Whether there was room for all; if not, none is written.
    """
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # settles where the axes are
    middles = axes.transData.transform(points)
    taken = [Bbox.from_extents(x - _MARKER, y - _MARKER, x + _MARKER, y + _MARKER) for x, y in middles]
    lines = [line.get_path().transformed(line.get_transform()) for line in axes.lines]
    texts: list[Text] = []
    for point, name in zip(points, names, strict=True):
        text = _placed(axes, point, name, taken, lines)
        if text is None:
            for written in texts:
                written.remove()
            return False
        texts.append(text)
        taken.append(text.get_window_extent())
    return True


def _placed(
    axes: Axes, point: tuple[float, float], name: str, taken: Sequence[Bbox], lines: Sequence[Path]
) -> Text | None:
    for horizontal, vertical, offset in _PLACES:
        text = write(axes, name, point, xytext=offset, textcoords="offset points", ha=horizontal, va=vertical)
        box = text.get_window_extent()
        is_within = all(axes.bbox.contains(*corner) for corner in box.corners())
        is_over = box.count_overlaps(taken) or any(line.intersects_bbox(box, filled=False) for line in lines)
        if is_within and not is_over:
            return text
        text.remove()
    return None
