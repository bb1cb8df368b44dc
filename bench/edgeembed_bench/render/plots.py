"""Plots of a report: quality against cost, latency distributions, latency by length, energy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from edgeembed_runtime.errors import one_line
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import ScaledTranslation

from edgeembed_bench.render.svg import (
    POINTS_PER_INCH,
    TEXT_SIZE,
    WIDTH,
    Image,
    add_legend,
    color,
    draw,
    fit,
    ink,
    log_limits,
    marker,
    muted,
    printable,
    set_log_scale,
    write,
)
from edgeembed_bench.render.tables import digits
from edgeembed_bench.render.tradeoff import Point, paint_tradeoff
from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.results import SubjectResult

_HEIGHT = 260.0  # points, of plots without rows; a legend adds to it
_MIN_ROW_HEIGHT, _MAX_ROW_HEIGHT = 42.0, 70.0  # points
_ROWS_HEIGHT = 210.0  # points, of all rows together unless that makes a row too low or too high
_AXIS_HEIGHT = 42.0  # points, of the axis below the rows
_BAR = 0.3  # height of a bar as a fraction of its row
_NAME_OFFSET = 15  # points from the marker of a row to its name
_PARETO = "Up and to the left is better; no subject outperforms those on the dashed line, the Pareto front."


@dataclass(frozen=True)
class Plot:
    """A plot of the page.

    Attributes:
        title: Title of the plot.
        caption: How to read the plot, or why it is missing.
        image: The plot; None if it is missing.
    """

    title: str
    caption: str
    image: Image | None


def build_plots(report: BenchmarkReport) -> list[Plot]:
    """Draw the plots of a report.

    Args:
        report: The report.

    Returns:
        The plots; those without data come last and state the reason.
    """
    drawn = [*_quality(report), _latency(report), _length_sweep(report), _energy(report)]
    plots = [replace(plot, caption=one_line(plot.caption)) for plot in drawn]
    return sorted(plots, key=lambda plot: plot.image is None)


def _quality(report: BenchmarkReport) -> list[Plot]:
    if not report.tasks:
        return [Plot("Quality against size and latency", "Quality was not measured: pass --sts or --retrieval.", None)]
    scored = [
        (position, subject, quality)
        for position, subject in enumerate(report)
        if (quality := report.mean_quality(subject.name)) is not None
    ]
    sizes = [
        Point(position, subject.name, subject.size.size_bytes / 1e6, quality)
        for position, subject, quality in scored
        if subject.size.size_bytes
    ]
    latencies = [
        Point(position, subject.name, subject.latency.median, quality, subject.latency)
        for position, subject, quality in scored
    ]
    return [
        _tradeoff("Quality against size", "size on disk in MB", sizes, report),
        _tradeoff("Quality against latency", "median latency in ms", latencies, report),
    ]


def _tradeoff(title: str, cost: str, points: list[Point], report: BenchmarkReport) -> Plot:
    if not points:
        return Plot(title, "No subject has both a score on every task and this cost.", None)
    shown = {point.name for point in points}
    absent = [subject.name for subject in report if subject.name not in shown]
    caption = f"{_PARETO} Without a score or a cost, and not shown: {', '.join(absent)}." if absent else _PARETO
    return Plot(title, caption, draw(partial(paint_tradeoff, points=points, cost=cost), _HEIGHT))


def _latency(report: BenchmarkReport) -> Plot:
    caption = "Line: median; box: first to third quartile; whiskers: 1st to 99th percentile of single texts."
    height = _rows_height(len(report.subjects))
    return Plot("Latency distribution", caption, draw(partial(_paint_latency, report=report), height))


def _length_sweep(report: BenchmarkReport) -> Plot:
    title = "Latency by length"
    if not report.settings.lengths:
        return Plot(title, "The run had no length sweep.", None)
    if not any(_untruncated(subject, report) for subject in report):
        return Plot(title, "Every subject truncates the texts of all lengths.", None)
    caption = (
        f"Median and quartiles (band). Tokens are counted by the tokenizer of {report.texts.counted_by}; a line "
        "ends where its subject truncates texts."
    )
    return Plot(title, caption, draw(partial(_paint_length_sweep, report=report), _HEIGHT))


def _energy(report: BenchmarkReport) -> Plot:
    title = "Energy per text"
    measured = [each for each in enumerate(report) if each[1].energy.mj_per_inference is not None]
    if not measured:
        reasons = dict.fromkeys(subject.energy.reason for subject in report if subject.energy.reason)
        return Plot(title, f"Not measured: {'; '.join(reasons) or 'no reason was recorded'}.", None)
    caption = "Pale: total, idle power included; solid, and in parentheses: above idle power. Short lines: quartiles."
    absent = [subject.name for subject in report if subject.energy.mj_per_inference is None]
    if absent:
        caption += f" Not measured: {', '.join(absent)}."
    return Plot(title, caption, draw(partial(_paint_energy, subjects=measured), _rows_height(len(measured))))


def _paint_latency(figure: Figure, report: BenchmarkReport) -> None:
    heads = [(row, subject.name, f"{digits(subject.latency.median)} ms") for row, subject in enumerate(report)]
    axes = _row_axes(figure, heads, "latency in ms (log scale)")
    ends: list[float] = []
    for row, subject in enumerate(report):
        artists = axes.boxplot(
            [subject.latency_ms],
            positions=[row],
            orientation="horizontal",
            widths=_BAR,
            whis=(1, 99),
            showfliers=False,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": color(row), "edgecolor": color(row), "alpha": 0.55},
            whiskerprops={"color": color(row), "linewidth": 1.5},
            capprops={"color": color(row), "linewidth": 1.5},
            medianprops={"color": ink(), "linewidth": 1.5},
        )
        ends += [float(end) for whisker in artists["whiskers"] for end in whisker.get_xdata()]
    set_log_scale(axes, "x", log_limits(ends))


def _paint_length_sweep(figure: Figure, report: BenchmarkReport) -> None:
    axes = figure.subplots()
    lengths = report.settings.lengths
    ends: list[float] = []
    for position, subject in enumerate(report):
        places = _untruncated(subject, report)
        read = [lengths[place] for place in places]
        spreads = [subject.sweep_at(place) for place in places]
        low, median, high = ([getattr(each, name) for each in spreads] for name in ("q1", "median", "q3"))
        axes.fill_between(read, low, high, color=color(position), alpha=0.25, linewidth=0)
        axes.plot(read, median, color=color(position), marker=marker(position), markersize=6, linewidth=1.8)
        ends += [*low, *high]
    set_log_scale(axes, "x", log_limits(lengths, room=1.15))
    axes.xaxis.set_major_locator(FixedLocator(sorted(lengths)))
    set_log_scale(axes, "y", log_limits(ends))
    axes.set_xlabel("tokens (log scale)")
    axes.set_title("latency in ms (log scale)")
    add_legend(figure, [subject.name for subject in report], range(len(report.subjects)))


def _untruncated(subject: SubjectResult, report: BenchmarkReport) -> list[int]:
    """Return the positions of the lengths that a subject does not truncate, the shortest length first."""
    lengths, most = report.settings.lengths, subject.info.max_tokens
    places = [place for place, length in enumerate(lengths) if most is None or length <= most]
    return sorted(places, key=lengths.__getitem__)


def _paint_energy(figure: Figure, subjects: Sequence[tuple[int, SubjectResult]]) -> None:
    heads = [(position, subject.name, _energy_figures(subject)) for position, subject in subjects]
    axes = _row_axes(figure, heads, "millijoules per text")
    for row, (position, subject) in enumerate(subjects):
        for energy, alpha in ((subject.energy.mj_per_inference, 0.35), (subject.energy.mj_above_idle, 1)):
            if energy is not None:
                axes.barh(row, energy.median, height=_BAR, color=color(position), alpha=alpha)
                axes.plot([energy.q1, energy.q3], [row, row], color=ink(), linewidth=1.5, solid_capstyle="butt")
    axes.set_xlim(left=min(0, axes.get_xlim()[0]))


def _energy_figures(subject: SubjectResult) -> str:
    total, above = subject.energy.mj_per_inference, subject.energy.mj_above_idle
    text = digits(None if total is None else total.median)
    return f"{text} mJ" if above is None else f"{text} ({digits(above.median)}) mJ"


def _rows_height(rows: int) -> float:
    """Return the height in points of a figure with a number of rows."""
    return _AXIS_HEIGHT + rows * min(max(_ROWS_HEIGHT / rows, _MIN_ROW_HEIGHT), _MAX_ROW_HEIGHT)


def _row_axes(figure: Figure, subjects: Sequence[tuple[int, str, str]], label: str) -> Axes:
    """Create axes with one row per subject, the first at 0 and on top.

    Args:
        figure: The empty figure.
        subjects: Position in the report, name, and the figures at the end of the row.
        label: Label of the horizontal axis.

    Returns:
        The axes.
    """
    axes = figure.subplots()
    axes.set_ylim(len(subjects) - 0.6, -0.75)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(label)
    for row, (position, name, figures) in enumerate(subjects):
        _write_row_head(axes, row - _BAR * 0.8, position, name, figures)
    return axes


def _write_row_head(axes: Axes, height: float, position: int, name: str, figures: str) -> None:
    """Write the marker, name and figures of a subject above its row."""
    across = axes.get_yaxis_transform()
    options = {"xycoords": across, "textcoords": "offset points", "va": "bottom"}
    right = write(axes, figures, (1, height), xytext=(0, 0), ha="right", color=muted(), **options)
    left = write(axes, printable(name), (0, height), xytext=(_NAME_OFFSET, 0), ha="left", **options)
    fit(left, WIDTH - right.get_window_extent().width - _NAME_OFFSET - 2 * TEXT_SIZE)
    inches = (5 / POINTS_PER_INCH, TEXT_SIZE / 2 / POINTS_PER_INCH)
    raised = across + ScaledTranslation(*inches, axes.figure.dpi_scale_trans)
    shape, hue = marker(position), color(position)
    axes.plot(0, height, marker=shape, color=hue, markersize=7, transform=raised, clip_on=False, zorder=3)
