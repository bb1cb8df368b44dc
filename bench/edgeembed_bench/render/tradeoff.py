"""Quality against cost: the points of a plot, its axes and its Pareto front."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from edgeembed_bench.render.svg import add_legend, color, log_limits, marker, muted, set_log_scale
from edgeembed_bench.stats import Quartiles

_MIN_QUALITY_SPAN = 20  # points; a smaller range would exaggerate differences of one or two


@dataclass(frozen=True)
class Point:
    """A subject in a plot of quality against cost.

    Attributes:
        position: Position of its color and marker, such as that of the subject in the report.
        name: Its name.
        cost: Its cost, positive.
        quality: Its mean score, 0 to 100.
        spread: Quartiles of its cost, if the cost varies.
    """

    position: int
    name: str
    cost: float
    quality: float
    spread: Quartiles | None = None


def pareto_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Select the points that no other point dominates.

    A point dominates another if its cost is no higher and its quality no lower, and one of the two differs.

    Args:
        points: Cost and quality of each.

    Returns:
        The front in order of rising cost, without duplicates.
    """
    front: list[tuple[float, float]] = []
    for cost, quality in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if not front or quality > front[-1][1]:
            front.append((cost, quality))
    return front


def quality_limits(scores: Sequence[float]) -> tuple[float, float]:
    """Choose the ends of a quality axis so that small differences look small.

    Args:
        scores: Mean scores, at most 100.

    Returns:
        Multiples of ten around the scores, at least 20 points apart, and within 0 to 100 if the scores are.
    """
    low, high = 10 * math.floor((min(scores) - 1) / 10), 10 * math.ceil((max(scores) + 1) / 10)
    if min(scores) >= 0:
        low = max(low, 0)
    high = min(high, 100)
    if high - low < _MIN_QUALITY_SPAN:
        low = max(high - _MIN_QUALITY_SPAN, min(low, 0))
        high = max(high, low + _MIN_QUALITY_SPAN)
    return low, high


def paint_tradeoff(figure: Figure, points: Sequence[Point], cost: str) -> None:
    """Draw quality against cost on a logarithmic axis, with quartiles and Pareto front.

    Args:
        figure: The empty figure.
        points: The subjects.
        cost: What the costs are, with their unit.
    """
    axes = figure.subplots()
    places = [(point.cost, point.quality) for point in points]
    costs, qualities = zip(*pareto_front(places), strict=True)
    axes.step(costs, qualities, where="post", color=muted(), linewidth=1.2, linestyle=(0, (4, 3)))
    ends = [cost for cost, _ in places]
    for point in points:
        if point.spread is not None:
            quartiles = [point.spread.q1, point.spread.q3]
            axes.plot(quartiles, [point.quality] * 2, color=color(point.position), linewidth=2, alpha=0.5)
            ends += quartiles
        shape, hue = marker(point.position), color(point.position)
        axes.plot(point.cost, point.quality, marker=shape, color=hue, markersize=9, clip_on=False, zorder=3)
    set_log_scale(axes, "x", log_limits(ends, room=1.5))
    axes.set_xlabel(f"{cost} (log scale)")
    low, high = quality_limits([quality for _, quality in places])
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MultipleLocator(10 if high - low <= 60 else 20))
    axes.set_title(f"mean quality score (axis from {low:g} to {high:g})")
    add_legend(figure, [point.name for point in points], [point.position for point in points])
