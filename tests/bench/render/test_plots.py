from dataclasses import replace

import numpy as np
import pytest
from edgeembed_bench import BenchmarkReport
from edgeembed_bench.render.plots import _paint_length_sweep
from edgeembed_bench.render.svg import DARK, LIGHT, ColorScheme, color, log_limits, marker
from edgeembed_bench.render.tradeoff import pareto_front, quality_limits
from matplotlib.figure import Figure

Points = list[tuple[float, float]]


@pytest.mark.parametrize(
    ("points", "front"),
    [
        ([(1, 50)], [(1, 50)]),
        ([(2, 60), (1, 50)], [(1, 50), (2, 60)]),
        ([(1, 60), (2, 50)], [(1, 60)]),
        ([(1, 50), (2, 70), (3, 60), (4, 80)], [(1, 50), (2, 70), (4, 80)]),
        # Equal quality at a higher cost, and lower quality at the same cost.
        ([(1, 50), (2, 50)], [(1, 50)]),
        ([(1, 50), (1, 60)], [(1, 60)]),
        ([(1, 50), (1, 50)], [(1, 50)]),
        ([], []),
    ],
)
def test_pareto_front_holds_the_points_that_no_other_dominates(points: Points, front: Points) -> None:
    assert pareto_front(points) == front
    assert pareto_front(points[::-1]) == front


@pytest.mark.parametrize(
    ("scores", "limits"),
    [
        ([76.5, 74.5], (60, 80)),
        ([74.6], (60, 80)),
        ([55.5, 74.6], (50, 80)),
        ([99.8, 98.9], (80, 100)),
        ([0.4, 1.2], (0, 20)),
        ([12, 91], (10, 100)),
        ([-3.0, 40], (-10, 50)),
        ([80.0, 79.0], (70, 90)),
    ],
)
def test_quality_axis_never_exaggerates_small_differences(scores: list[float], limits: tuple[float, float]) -> None:
    assert quality_limits(scores) == limits


def test_logarithmic_axis_spans_enough_for_two_ticks() -> None:
    low, high = log_limits([10.0])
    assert low < 10 < high
    assert high / low == pytest.approx(5)


def test_subjects_look_different_beyond_the_number_of_colors() -> None:
    assert len({(color(position), marker(position)) for position in range(64)}) == 64


def _with_lengths(report: BenchmarkReport, lengths: tuple[int, ...], max_tokens: int | None) -> BenchmarkReport:
    """Return a report whose texts of n tokens take n milliseconds, by each subject."""
    subjects = (
        replace(
            subject,
            info=replace(subject.info, max_tokens=max_tokens),
            processes=tuple(
                replace(run, sweep_ms=tuple((float(length),) * 3 for length in lengths)) for run in subject.processes
            ),
        )
        for subject in report
    )
    return replace(report, subjects=tuple(subjects), settings=replace(report.settings, lengths=lengths))


@pytest.mark.parametrize(
    ("lengths", "max_tokens", "shown"),
    [
        ((128, 8, 16, 32, 64), None, [8, 16, 32, 64, 128]),
        ((128, 8, 16, 32, 64), 32, [8, 16, 32]),
        ((8, 16, 32), 16, [8, 16]),
        ((512, 4), 256, [4]),
    ],
)
def test_each_length_is_plotted_at_its_own_time(
    report: BenchmarkReport, lengths: tuple[int, ...], max_tokens: int | None, shown: list[int]
) -> None:
    figure = Figure()
    _paint_length_sweep(figure, _with_lengths(report, lengths, max_tokens))
    lines = figure.axes[0].get_lines()
    assert len(lines) == 2
    for line in lines:
        assert np.asarray(line.get_xdata()).tolist() == shown
        assert np.asarray(line.get_ydata()).tolist() == shown


def test_lengths_that_all_subjects_truncate_have_no_plot_but_a_reason(report: BenchmarkReport) -> None:
    truncated = _with_lengths(report, (512, 1024), 256)
    page = truncated.to_html()
    assert "Every subject truncates the texts of all lengths." in page
    assert truncated._repr_html_()
    assert "512*" in truncated.to_markdown() or r"512\*" in truncated.to_markdown()


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_series_contrast_with_the_background(scheme: ColorScheme) -> None:
    for background in (scheme.paper, scheme.card, scheme.warning):
        assert contrast(scheme.ink, background) > 12
    for background in (scheme.paper, scheme.card):
        assert contrast(scheme.muted, background) > 5
        assert all(contrast(series, background) > 4 for series in scheme.series)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(rgb: str) -> float:
    parts = [int(rgb[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
