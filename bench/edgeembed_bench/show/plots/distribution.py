"""How a subject's latency scatters: a box for each."""

from matplotlib.figure import Figure

from edgeembed_bench.formats import digits
from edgeembed_bench.report import BenchReport
from edgeembed_bench.show.plots.axis import label_ticks, log_limits
from edgeembed_bench.show.plots.rows import BAR, row_axes
from edgeembed_bench.show.plots.series import INK, look


def paint_distributions(figure: Figure, report: BenchReport) -> None:
    """Paint for each subject a box of its quartiles and whiskers from the 1st to the 99th hundredth.

    Args:
        figure: The empty figure.
        report: What a run found.
    """
    heads = [(row, subject.name, f"{digits(subject.latency.median)} ms") for row, subject in enumerate(report)]
    axes = row_axes(figure, heads, "milliseconds a text")
    ends: list[float] = []
    for row, subject in enumerate(report):
        colour = look(row).colour
        drawn = axes.boxplot(
            [subject.latency_ms],
            positions=[row],
            orientation="horizontal",
            widths=BAR,
            whis=(1, 99),
            showfliers=False,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": colour, "edgecolor": colour, "alpha": 0.55},
            whiskerprops={"color": colour, "linewidth": 1.5},
            capprops={"color": colour, "linewidth": 1.5},
            medianprops={"color": INK, "linewidth": 1.5},
        )
        ends += [float(end) for whisker in drawn["whiskers"] for end in whisker.get_xdata()]
    limits = log_limits(ends)
    axes.set_xscale("log")
    axes.set_xlim(limits)
    label_ticks(axes.xaxis, limits)
