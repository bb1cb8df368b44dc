"""Text in a figure: names that users chose, taken as they are."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.text import Text

from edgeembed_bench.show.plots.series import INK

LONGEST = 28  # letters; beside them a figure has room for a number


def shown(name: str) -> str:
    """Give a name as a figure has room for it.

    Args:
        name: A subject's name.
    """
    return _shortened("".join(letter if letter.isprintable() else " " for letter in name), LONGEST)


def fit(text: Text, room: float) -> None:
    """Shorten a text until it is no wider than there is room.

    Args:
        text: The text, in its figure.
        room: Units.
    """
    while text.get_window_extent().width > room and len(text.get_text()) > 2:
        text.set_text(_shortened(text.get_text(), len(text.get_text()) - 1))


def write(axes: Axes, text: str, place: tuple[float, float], **options: Any) -> Text:
    """Write a text beside a place, a dollar sign being one and not the start of mathematics.

    Args:
        axes: Where.
        text: What.
        place: Of the axes' data, unless `xycoords` says otherwise.
        options: As for `Axes.annotate`.
    """
    chosen: dict[str, Any] = {"color": INK, "annotation_clip": False, "parse_math": False}
    return axes.annotate(text, place, **(chosen | options))


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text.rstrip('…')[: longest - 1]}…"
