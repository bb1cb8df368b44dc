"""Which subjects are worth a look: those that no other beats in both cost and quality."""

import itertools
from collections.abc import Sequence


def pareto_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Give the points that no other point beats.

    One point beats another if it costs no more and is no worse, and differs in one of the two.

    Args:
        points: Cost and quality of each; little cost and much quality are good.

    Returns:
        The front by rising cost, each place once.
    """
    front: list[tuple[float, float]] = []
    for cost, quality in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if not front or quality > front[-1][1]:
            front.append((cost, quality))
    return front


def stairs(front: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Give the corners of a line along a front: the best quality at each cost.

    Args:
        front: The front by rising cost.
    """
    corners = list(front[:1])
    for (_, reached), (cost, quality) in itertools.pairwise(front):
        corners += [(cost, reached), (cost, quality)]
    return corners
