"""What quality costs: a point for each subject, and the front of those that no other beats."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgeembed_bench.estimates import Spread
from edgeembed_bench.show.plots.axis import label_ticks, log_limits
from edgeembed_bench.show.plots.labels import label_points
from edgeembed_bench.show.plots.legend import add_legend
from edgeembed_bench.show.plots.pareto import pareto_front, stairs
from edgeembed_bench.show.plots.series import MUTED, look
from edgeembed_bench.show.plots.texts import shown

HEIGHT = 270.0


@dataclass(frozen=True)
class Point:
    """One subject.

    Attributes:
        position: Its position in the report.
        name: Its name.
        cost: What it costs.
        quality: What it scores.
        scatter: Quartiles of its cost, if that scatters.
    """

    position: int
    name: str
    cost: float
    quality: float
    scatter: Spread | None = None


def paint_scatter(figure: Figure, points: Sequence[Point], cost: str) -> None:
    """Paint quality against cost, the latter on a logarithmic axis.

    Args:
        figure: The empty figure.
        points: The subjects; at least one.
        cost: What the cost is, with its unit.
    """
    axes = figure.subplots()
    places = [(point.cost, point.quality) for point in points]
    _front(axes, places)
    for point in points:
        _point(axes, point)
    limits = log_limits([cost for cost, _ in places], room=1.5)
    axes.set_xscale("log")
    axes.set_xlim(limits)
    label_ticks(axes.xaxis, limits)
    axes.margins(y=0.18)
    axes.set_xlabel(cost)
    axes.set_title("quality, mean score", loc="left", fontsize="medium", color=MUTED)
    if not label_points(axes, places, [shown(point.name) for point in points]):
        add_legend(figure, [point.name for point in points], [point.position for point in points])


def _front(axes: Axes, places: Sequence[tuple[float, float]]) -> None:
    costs, qualities = zip(*stairs(pareto_front(places)), strict=True)
    axes.plot(costs, qualities, color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)))


def _point(axes: Axes, point: Point) -> None:
    chosen = look(point.position)
    if point.scatter is not None:
        axes.plot(
            [point.scatter.q1, point.scatter.q3], [point.quality] * 2, color=chosen.colour, linewidth=2, alpha=0.5
        )
    axes.plot(point.cost, point.quality, marker=chosen.marker, markersize=9, color=chosen.colour)
