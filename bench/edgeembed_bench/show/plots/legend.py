"""Names below a figure that has no room for them beside what they name."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgeembed_bench.show.plots.canvas import WIDTH
from edgeembed_bench.show.plots.series import look
from edgeembed_bench.show.plots.texts import fit, shown

_LINE = 18.0  # units
_HANDLE = 52.0  # what a marker takes, and the blank around it


def add_legend(figure: Figure, names: Sequence[str], positions: Sequence[int]) -> None:
    """Put names with their markers below a figure, which grows by as much.

    Args:
        figure: The figure.
        names: The subjects' names.
        positions: Their positions in the report.
    """
    texts = [shown(name) for name in names]
    columns = 2 if max(len(text) for text in texts) <= 18 else 1
    lines = -(-len(texts) // columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + (lines * _LINE + 14) / figure.dpi)
    handles = [_handle(position) for position in positions]
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
        # Given here and not above, where a name that begins with an underscore would be left out.
        entry.set_parse_math(False)
        entry.set_text(text)
        fit(entry, WIDTH / columns - _HANDLE)


def _handle(position: int) -> Line2D:
    chosen = look(position)
    return Line2D([], [], color=chosen.colour, marker=chosen.marker, markersize=7)
