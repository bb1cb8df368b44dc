"""Table 3 of Xayn's extreme compression paper: energy and time per inference, medians and quartiles of 1,000 runs."""

from edgeembed_bench.paper_tables.base import PaperTable
from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.stats import Quartiles


def xayn_table(report: BenchmarkReport) -> PaperTable:
    """Return table 3, filled with the results of a benchmark.

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
            _cell(subject.energy.mj_per_inference),
            _cell(subject.energy.mj_above_idle),
            _cell(subject.latency),
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


def _cell(quartiles: Quartiles | None) -> str:
    return "not measured" if quartiles is None else f"{quartiles.median:.3f} [{quartiles.q1:.3f}, {quartiles.q3:.3f}]"
