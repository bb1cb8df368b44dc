"""Logarithmic axes with ticks that a reader knows: 0.5, 1, 2, 5, 10."""

import math
from collections.abc import Sequence

from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

_LEAST_SPAN = 5.0  # so that the axis holds two ticks at least


def log_limits(values: Sequence[float], room: float = 1.25) -> tuple[float, float]:
    """Give limits around values, for a logarithmic axis.

    Args:
        values: What is to be seen; positive.
        room: How far the limits are beyond the least and the most, as a factor.
    """
    low, high = min(values) / room, max(values) * room
    widened = max(math.sqrt(_LEAST_SPAN * low / high), 1)
    return low / widened, high * widened


def label_ticks(axis: Axis, limits: tuple[float, float]) -> None:
    """Put plain numbers beside a logarithmic axis, as many as there is room for.

    Args:
        axis: The axis.
        limits: Its ends.
    """
    decades = math.log10(limits[1] / limits[0])
    steps = (1, 2, 5) if decades < 2 else (1, 3) if decades < 3 else (1,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=30))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
