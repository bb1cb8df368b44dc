"""The plots of a report: which there are, how to read them, and why one is missing."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from matplotlib.figure import Figure

from edgeembed_bench.formats import names
from edgeembed_bench.report import BenchReport
from edgeembed_bench.show.plots import scatter, sweep
from edgeembed_bench.show.plots.bars import paint_energy
from edgeembed_bench.show.plots.canvas import drawn
from edgeembed_bench.show.plots.distribution import paint_distributions
from edgeembed_bench.show.plots.rows import rows_height
from edgeembed_bench.show.plots.scatter import Point, paint_scatter
from edgeembed_bench.show.plots.sweep import paint_sweep

_FRONT = "Up and to the left is better; no subject beats those on the dashed line, the Pareto front."


@dataclass(frozen=True)
class Plot:
    """One plot.

    Attributes:
        title: What it shows.
        caption: How to read it, or why it is missing.
        svg: An element for a page of HTML; None if it is missing.
    """

    title: str
    caption: str
    svg: str | None


def plots(report: BenchReport) -> list[Plot]:
    """Draw what a run found.

    Args:
        report: What it found.

    Returns:
        The plots; last, those of what was not measured, which say so instead.
    """
    found = [*_quality(report), _distributions(report), _sweep(report), _energy(report)]
    return sorted(found, key=lambda plot: plot.svg is None)


def _quality(report: BenchReport) -> list[Plot]:
    if not report.tasks:
        return [Plot("Quality against size and latency", "Quality was not measured: give --sts or --retrieval.", None)]
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
        _scatter("Quality against size", "megabytes on disk", sizes, report),
        _scatter("Quality against latency", "milliseconds a text, median and quartiles", latencies, report),
    ]


def _scatter(title: str, cost: str, points: list[Point], report: BenchReport) -> Plot:
    if not points:
        return Plot(title, "No subject has both figures: a score on every task, and what it costs.", None)
    known = {point.name for point in points}
    absent = [subject.name for subject in report if subject.name not in known]
    caption = f"{_FRONT} Not here, as it lacks a score or a cost: {names(absent)}." if absent else _FRONT
    return _plot(title, caption, scatter.HEIGHT, partial(paint_scatter, points=points, cost=cost))


def _distributions(report: BenchReport) -> Plot:
    caption = "Half of all texts take as long as the box spans, 98 of 100 as the whiskers; the line is the median."
    height = rows_height(len(report.subjects))
    return _plot("Latency of single texts", caption, height, partial(paint_distributions, report=report))


def _sweep(report: BenchReport) -> Plot:
    title = "Latency by length"
    if not report.settings.lengths:
        return Plot(title, "The run had no length sweep.", None)
    caption = (
        "A steeper line pays more for longer texts; the bands are quartiles. "
        f"Tokens as {report.settings.lengths_by}'s tokenizer counts them; a line ends where its subject cuts texts."
    )
    return _plot(title, caption, sweep.HEIGHT, partial(paint_sweep, report=report))


def _energy(report: BenchReport) -> Plot:
    title = "Energy of a text"
    measured = [each for each in enumerate(report) if each[1].energy.mj_per_inference is not None]
    reasons = dict.fromkeys(subject.energy.reason for subject in report if subject.energy.reason)
    if not measured:
        return Plot(title, f"Not measured: {'; '.join(reasons) or 'no reason was given'}.", None)
    caption = (
        "Pale: all that the machine used meanwhile; strong, and in brackets: what is above its idle power. "
        "The short lines are quartiles."
    )
    absent = [subject.name for subject in report if subject.energy.mj_per_inference is None]
    if absent:
        caption += f" Not measured: {names(absent)}."
    return _plot(title, caption, rows_height(len(measured)), partial(paint_energy, subjects=measured))


def _plot(title: str, caption: str, height: float, paint: Callable[[Figure], None]) -> Plot:
    return Plot(title, caption, drawn(title.lower().replace(" ", "-"), height, paint))
