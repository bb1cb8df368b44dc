"""A bench report as a table for a terminal, with what it takes to read it below."""

import numpy as np
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from edgeembed_bench.report import BenchReport, SubjectResult

_FIGURES = ("MB", "params", "ms", "q1", "q3", "x base", "texts\n/s", "mJ")


def report_table(report: BenchReport) -> Group:
    """Lay a report out, one subject a row.

    Args:
        report: What a run found.

    Returns:
        The table and, below it, how it was measured and why a figure is missing; for a rich console.
    """
    titles = list(dict.fromkeys(title for subject in report.subjects for title in subject.quality))
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("subject", no_wrap=True)
    for title in (*_FIGURES, *titles):
        table.add_column(title, justify="right", overflow="fold")
    for subject in report.subjects:
        quality = (_fixed(subject.quality.get(title), 1) for title in titles)
        table.add_row(Text(subject.name), *_costs(report, subject), *quality)
    return Group(table, *(Text(note, style="dim") for note in [_method(report), *_missing(report)]))


def _costs(report: BenchReport, subject: SubjectResult) -> list[str]:
    q1, median, q3 = (_digits(subject.latency.quantile_ms(share)) for share in (0.25, 0.5, 0.75))
    energy_mj = subject.energy.mj_per_inference
    return [
        _fixed(subject.size_bytes / 1e6, 1),
        "-" if subject.parameters is None else f"{_digits(subject.parameters / 1e6)}M",
        median,
        q1,
        q3,
        _fixed(report.latency_ratio(subject.name), 2),
        f"{subject.sentences_per_s:,.0f}",
        "not\nmeasured" if energy_mj is None else _digits(energy_mj),
    ]


def _method(report: BenchReport) -> str:
    settings = report.settings
    return (
        f"ms: median latency of {settings.runs:,} texts one by one, tokenizing included, and its quartiles "
        f"({settings.texts:,} different, {settings.mean_characters:.0f} characters on average); x base: "
        f"the latency as a multiple of {report.baseline}'s; texts/s: batches of {settings.batch_size}; "
        f"mJ: energy a text; MB: 10^6 bytes of what it runs from; threads: {settings.threads}; {report.machine.cpu}"
    )


def _missing(report: BenchReport) -> list[str]:
    names: dict[str, list[str]] = {}
    for subject in report.subjects:
        if subject.energy.reason is not None:
            names.setdefault(subject.energy.reason, []).append(subject.name)
    return [f"energy not measured for {', '.join(names[reason])}: {reason}" for reason in names]


def _digits(value: float) -> str:
    return np.format_float_positional(value, precision=3, fractional=False, trim="-")


def _fixed(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"
