"""Table 3 of Xayn's paper: energy and time of an inference.

A command: `python -m edgeembed.papers.xayn.cost_table SUBJECT...`.
"""

from typing import Any

import click
from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.stats import Quartiles

from edgeembed.cli.main import main
from edgeembed.papers.cost_table import PaperTable, cost_options, print_table


def xayn_table(report: BenchmarkReport) -> PaperTable:
    """Return table 3 of Xayn's extreme compression paper, filled with a benchmark: energy and time per inference.

    The paper's unit is kJ. This table reads it as mJ, since an inference of 153 ms on a laptop cannot use kilojoules.

    Args:
        report: The report of a benchmark; the paper timed 1,000 single texts.

    Returns:
        The table. Cells of energy that was not measured say so, and are never 0.
    """
    rows = [
        (
            subject.name,
            str(subject.info.dimension),
            _median_and_quartiles(subject.energy.mj_per_inference),
            _median_and_quartiles(subject.energy.mj_above_idle),
            _median_and_quartiles(subject.latency),
        )
        for subject in report
    ]
    reasons = {subject.energy.reason for subject in report if subject.energy.reason is not None}
    sources = {subject.energy.source for subject in report if subject.energy.source is not None}
    notes = [
        (
            f"time: {report.settings.runs:,} single texts per subject in {report.settings.processes} processes, "
            f"tokenization included; {report.settings.threads} thread(s)"
        ),
        *(f"energy: {source}, windows of many inferences" for source in sorted(sources)),
        *(f"energy not measured: {reason}" for reason in sorted(reasons)),
    ]
    return PaperTable(
        name="xayn",
        source="Xayn's extreme compression, table 3: energy and inference time",
        columns=("model", "dim", "energy [mJ]", "energy above idle [mJ]", "inference time [ms]"),
        rows=tuple(rows),
        notes=tuple(notes),
        samples={subject.name: {"latency_ms": subject.latency_ms} for subject in report},
        machine=report.machine,
        load=report.load,
        created_utc=report.created_utc,
    )


def _median_and_quartiles(quartiles: Quartiles | None) -> str:
    return "not measured" if quartiles is None else f"{quartiles.median:.3f} [{quartiles.q1:.3f}, {quartiles.q3:.3f}]"


@click.command()
@cost_options
@click.option("--texts", metavar="FILE", help="Texts to encode.  [default: sentences of Python's docstrings]")
@click.option("--runs", default=1000, show_default=True, type=click.IntRange(min=1), help="Timed texts per subject.")
@click.option("--processes", default=10, show_default=True, type=click.IntRange(min=1), help="Per subject.")
def command(
    models: tuple[str, ...],
    against: tuple[str, ...],
    threads: int,
    seed: int,
    texts: str | None,
    runs: int,
    processes: int,
    **output: Any,
) -> None:
    """Measure table 3 of Xayn's paper: energy and time of an inference, medians and quartiles."""
    from edgeembed.benchmarking import benchmark

    options: dict[str, Any] = {"runs": runs, "processes": processes, "threads": threads, "seed": seed}

    def measure() -> PaperTable:
        return xayn_table(benchmark(models, against=against, texts=texts, sweep=False, **options))

    print_table(measure, inputs=[] if texts is None else [texts], **output)


if __name__ == "__main__":
    main(command=command)
