"""One colour and one marker for each subject, the same in all plots."""

from dataclasses import dataclass

# Colours that a plot is drawn in and that no reader sees: the page gives each its own, light or dark.
INK, MUTED, GRID = "#fe0001", "#fe0002", "#fe0003"
COLOURS = 8
_SERIES = [f"#fe00{number:02x}" for number in range(0x11, 0x11 + COLOURS)]
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(_SERIES, start=1)},
}
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True)
class Look:
    """How a subject looks.

    Attributes:
        colour: Its stand-in colour.
        marker: Its marker, as matplotlib names it.
    """

    colour: str
    marker: str


def look(position: int) -> Look:
    """Give the look of the subject at a position; after 64 of them looks repeat.

    Args:
        position: Its position in the report.
    """
    around, colour = divmod(position, COLOURS)
    return Look(_SERIES[colour], _MARKERS[(colour + around) % len(_MARKERS)])
