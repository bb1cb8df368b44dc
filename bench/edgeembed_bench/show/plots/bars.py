"""What energy a text takes: a bar for each subject."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgeembed_bench.estimates import Spread
from edgeembed_bench.formats import digits
from edgeembed_bench.report import SubjectResult
from edgeembed_bench.show.plots.rows import BAR, row_axes
from edgeembed_bench.show.plots.series import INK, look


def paint_energy(figure: Figure, subjects: Sequence[tuple[int, SubjectResult]]) -> None:
    """Paint a bar for all energy and, over it, a strong one for what is above idle power, with their quartiles.

    Args:
        figure: The empty figure.
        subjects: Position and result of those whose energy was measured.
    """
    heads = [(position, subject.name, _figures(subject)) for position, subject in subjects]
    axes = row_axes(figure, heads, "millijoules a text")
    for row, (position, subject) in enumerate(subjects):
        colour = look(position).colour
        _bar(axes, row, subject.energy.mj_per_inference, colour, alpha=0.35)
        _bar(axes, row, subject.energy.mj_above_idle, colour, alpha=1)
    axes.set_xlim(left=min(0, axes.get_xlim()[0]))


def _bar(axes: Axes, row: int, found: Spread | None, colour: str, alpha: float) -> None:
    if found is None:
        return
    axes.barh(row, found.median, height=BAR, color=colour, alpha=alpha)
    axes.plot([found.q1, found.q3], [row, row], color=INK, linewidth=1.5, solid_capstyle="butt")


def _figures(subject: SubjectResult) -> str:
    whole, above = subject.energy.mj_per_inference, subject.energy.mj_above_idle
    text = digits(None if whole is None else whole.median)
    return f"{text} mJ" if above is None else f"{text} ({digits(above.median)}) mJ"
