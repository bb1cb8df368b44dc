"""How latency grows with the length of a text."""

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from edgeembed_bench.report import BenchReport
from edgeembed_bench.show.plots.axis import label_ticks, log_limits
from edgeembed_bench.show.plots.legend import add_legend
from edgeembed_bench.show.plots.series import MUTED, look

HEIGHT = 250.0


def paint_sweep(figure: Figure, report: BenchReport) -> None:
    """Paint a line of medians and a band of quartiles for each subject, both axes logarithmic.

    Args:
        figure: The empty figure.
        report: What a run with a length sweep found.
    """
    axes = figure.subplots()
    lengths = report.settings.lengths
    ends: list[float] = []
    for position, subject in enumerate(report):
        chosen = look(position)
        read = [length for length in lengths if length <= (subject.facts.max_tokens or length)]
        found = [subject.sweep_at(place) for place in range(len(read))]
        low, middle, high = ([getattr(each, name) for each in found] for name in ("q1", "median", "q3"))
        axes.fill_between(read, low, high, color=chosen.colour, alpha=0.25, linewidth=0)
        axes.plot(read, middle, color=chosen.colour, marker=chosen.marker, markersize=6, linewidth=1.8)
        ends += [*low, *high]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(log_limits(lengths, room=1.15))
    axes.set_ylim(log_limits(ends))
    label_ticks(axes.xaxis, axes.get_xlim())
    axes.xaxis.set_major_locator(FixedLocator(list(lengths)))
    label_ticks(axes.yaxis, axes.get_ylim())
    axes.set_xlabel("tokens")
    axes.set_title("milliseconds a text", loc="left", fontsize="medium", color=MUTED)
    add_legend(figure, [subject.name for subject in report], range(len(report.subjects)))
