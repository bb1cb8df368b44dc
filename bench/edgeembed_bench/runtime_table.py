"""The runtime's benchmark as tables for a terminal, with what it takes to read them below."""

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from edgeembed_bench.formats import MISSING, digits, fixed
from edgeembed_bench.runtime_report import RuntimeReport, SubjectRun
from edgeembed_bench.stats import FEWEST_FOR_INTERVAL, Estimate, Spread, spread


def runtime_tables(report: RuntimeReport) -> Group:
    """Lay a report out: latency, cold start, memory, what the runtime adds, the targets, notes.

    Args:
        report: What a run found.

    Returns:
        The tables, for a rich console.
    """
    return Group(
        _latency(report),
        Text(),
        _starts(report),
        Text(),
        _memory(report),
        Text(),
        _parts(report),
        Text(),
        _targets(report),
        Text(),
        *(Text(note, style="dim") for note in _notes(report)),
    )


def _latency(report: RuntimeReport) -> Table:
    table = _table("latency", "ms", "q1", "q3", f"x {report.baseline}", "95 %")
    for run in report.runs:
        if run.latency_ms is not None:
            table.add_row(run.name, *_spread(run.latency_ms), *_estimate(report.latency_ratio(run.name), 3))
    return table


def _starts(report: RuntimeReport) -> Table:
    table = _table("cold start", "ms", "q1", "q3", "python", "import", "load", "first", "x floor", "95 %")
    for run in report.runs:
        stages = [run.median_start(f"{stage}_ms") for stage in ("interpreter", "import", "load", "first_call")]
        whole = spread(run.start_ms)
        times = (fixed(time, 1) for time in (whole.median, whole.q1, whole.q3, *stages))
        table.add_row(run.name, *times, *_estimate(report.start_ratio(run.name), 2))
    return table


def _memory(report: RuntimeReport) -> Table:
    table = _table("memory", "MB", "x floor", "peak MB", "after all texts")
    for run in report.runs:
        ratio, _ = _estimate(report.memory_ratio(run.name), 2)
        resident, peak = run.median_start("resident_bytes"), run.median_start("peak_bytes")
        table.add_row(run.name, _megabytes(resident), ratio, _megabytes(peak), _megabytes(run.median_resident_bytes))
    return table


def _parts(report: RuntimeReport) -> Table:
    table = _table("overhead", "encode us", "bare us", "tokenize", "run", "added us", "95 %")
    for run in report.runs:
        if run.parts_us:
            medians = (digits(run.part_us(part)) for part in ("encode", "bare", "tokenize", "run"))
            table.add_row(run.name, *medians, *_estimate(run.overhead_us, 1))
    return table


def _targets(report: RuntimeReport) -> Table:
    table = _table("target", "measured", "95 %", "at most", "met")
    met = {True: "yes", False: "NO", None: "unclear"}
    for target in report.targets():
        table.add_row(target.what, *_estimate(target.measured, 2), f"{target.most:g}", met[target.is_met])
    return table


def _notes(report: RuntimeReport) -> list[str]:
    settings = report.settings
    core = "as many cores as the system gives" if settings.core is None else f"core {settings.core}"
    load = "unknown" if settings.load_average is None else f"{settings.load_average:.2f}"
    calls = settings.rounds * settings.block
    notes = [
        (
            "95 %: Student-t interval over the processes (of ratios, on their logarithms); none for fewer than "
            f"{FEWEST_FOR_INTERVAL} processes"
        ),
        (
            f"latency: one text a call, tokenizing included; {calls:,} calls a subject in {settings.processes} fresh "
            f"processes, in turns of {settings.block}, shuffled; {settings.texts:,} sentences of "
            f"{settings.texts_from}, {settings.mean_characters:.0f} characters on average"
        ),
        (
            f"cold start: process start to first vector, {settings.starts} fresh processes a subject, shuffled, "
            "and the medians of its stages. memory: resident, in 10^6 bytes, after the first vector; peak: the most "
            "until then"
        ),
        (
            "overhead: encode(text) less bare: the tokenizer, arrays of its tokens and the session (or the matrix "
            "work), and nothing else, on the same text in the same process, text by text: the mean over processes of "
            f"the median of {settings.passes * calls // settings.processes:,} differences each"
        ),
        (
            f"one thread each, everything on {core} of {report.machine.cores_allowed}, load average before: {load}; "
            f"{report.machine.cpu}, Python {report.machine.python}"
        ),
    ]
    if settings.is_busy:
        notes.append("PROVISIONAL: others were at work on this machine; run again when it is idle")
    notes += [f"{run.name}: {run.subject.note}; {_versions(run)}" for run in report.runs]
    return notes + [f"{name} left out: {reason}" for name, reason in report.left_out.items()]


def _versions(run: SubjectRun) -> str:
    return ", ".join(f"{name} {version}" for name, version in run.facts["versions"].items())


def _table(first: str, *titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(first, no_wrap=True)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _spread(found: Spread) -> Sequence[str]:
    return [digits(found.median), digits(found.q1), digits(found.q3)]


def _estimate(found: Estimate | None, decimals: int) -> Sequence[str]:
    if found is None:
        return [MISSING, MISSING]
    if found.low is None or found.high is None:
        return [f"{found.value:.{decimals}f}", MISSING]
    return [f"{found.value:.{decimals}f}", f"{found.low:.{decimals}f}-{found.high:.{decimals}f}"]


def _megabytes(size: float | None) -> str:
    return fixed(None if size is None else size / 1e6, 1)
