"""The plots of a report."""

from edgeembed_bench.show.plots.canvas import swatch
from edgeembed_bench.show.plots.plot import Plot, plots

__all__ = ["Plot", "plots", "swatch"]
