"""Tables of a report, as text: built once, then written by the terminal, Markdown and HTML renderers."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edgeembed_bench.formats import (
    MISSING,
    NOT_MEASURED,
    counted,
    digits,
    fixed,
    interval,
    megabytes,
    millions,
    quartiles,
    ratio,
)
from edgeembed_bench.report import BenchReport, SubjectResult
from edgeembed_bench.stats import Spread
from edgeembed_bench.verdicts import Verdict

QUARTILES = "Q1–Q3"  # noqa: RUF001  # an en dash


@dataclass(frozen=True)
class Table:
    """A table with one row per subject.

    Attributes:
        title: What the table shows.
        columns: Column headers; the first is that of the subject names.
        rows: One row per subject: its name, then one cell per column.
        legend: What the columns mean.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: str


@dataclass(frozen=True)
class _Column:
    """A column before its cells are written.

    Attributes:
        title: The header.
        write: Returns a subject's cell.
        meaning: The column's part of the legend; empty if the header says enough.
    """

    title: str
    write: Callable[[SubjectResult], str]
    meaning: str = ""


def build_tables(report: BenchReport, verdicts: Mapping[str, Verdict]) -> list[Table]:
    """Build the tables of a report; columns and tables without any data are left out.

    Args:
        report: The report.
        verdicts: Latency comparison with the baseline, by subject name.

    Returns:
        The tables, the overview first.
    """
    columns = {
        "Overview": _overview(report, verdicts),
        "Size": _size(),
        "Latency": _latency(),
        "Latency by length": _length_sweep(report),
        "Cold start": _cold_start(),
        "Memory": _memory(),
        "Energy": _energy(report),
        "Quality": _quality(report),
    }
    sweep = (
        "median milliseconds per text of as many tokens as the header says, counted by the tokenizer of "
        f"{report.settings.lengths_by}; *: truncated, since the subject's maximum length is shorter"
    )
    built = [_table(report, title, group, {"Latency by length": sweep}) for title, group in columns.items()]
    return [table for table in built if len(table.columns) > 1]


def percent(value: float | None) -> str:
    """Format a percentage without decimals."""
    return MISSING if value is None else f"{value:.0f} %"


def _overview(report: BenchReport, verdicts: Mapping[str, Verdict]) -> list[_Column]:
    def compared(write: Callable[[Verdict], str]) -> Callable[[SubjectResult], str]:
        return lambda subject: write(verdicts[subject.name]) if subject.name in verdicts else MISSING

    base = report.baseline
    return [
        _Column("MB", lambda subject: megabytes(subject.size.size_bytes), "size on disk in 10^6 bytes"),
        _Column("ms", lambda subject: digits(subject.latency.median), "median latency of one text, with tokenization"),
        _Column(
            "ratio",
            compared(lambda each: ratio(each.ratio.value)),
            f"latency divided by that of {base}, geometric mean over processes",
        ),
        _Column(
            "95 % CI",
            compared(lambda each: interval(each.ratio)),
            "confidence interval of the ratio",
        ),
        _Column("difference", compared(_difference), "Wilcoxon signed-rank test over processes, 1 % level"),
        _Column(
            "texts/s",
            lambda subject: counted(report.sentences_per_s(subject.name)),
            f"throughput at batch size {report.settings.batch_size}",
        ),
        _Column(
            "quality",
            lambda subject: percent(report.quality_percent(subject.name)),
            f"mean score as a percentage of that of {base}",
        ),
    ]


def _difference(verdict: Verdict) -> str:
    if verdict.differs is None:
        return "not tested"
    if not verdict.differs:
        return "none detected"
    return "faster" if verdict.ratio.value < 1 else "slower"


def _size() -> list[_Column]:
    return [
        _Column("MB", lambda subject: megabytes(subject.size.size_bytes), "the files needed to run the model"),
        _Column("zip MB", lambda subject: megabytes(subject.size.download_bytes), "the same, compressed with deflate"),
        _Column("params", lambda subject: millions(subject.facts.parameters), "parameters"),
        _Column(
            "backbone",
            lambda subject: millions(_backbone_parameters(subject)),
            "parameters outside the token, position and token type embeddings",
        ),
        _Column("vocab", lambda subject: counted(subject.facts.vocabulary), "vocabulary size"),
        _Column("dim", lambda subject: str(subject.facts.dimension), "embedding dimension"),
        _Column(
            "deps MB",
            lambda subject: megabytes(_dependency_bytes(subject)),
            "installed size of its Python packages and all of their dependencies",
        ),
    ]


def _latency() -> list[_Column]:
    return [
        _Column("ms", lambda subject: digits(subject.latency.median), "median of single texts"),
        _Column(QUARTILES, lambda subject: quartiles(subject.latency), "first and third quartile"),
        _Column("p99 ms", lambda subject: digits(subject.p99_ms), "99th percentile"),
        _Column("tokenize ms", lambda subject: digits(subject.part_ms("tokenize")), "tokenization alone"),
        _Column("model ms", lambda subject: digits(subject.part_ms("run")), "the model alone, on token ids"),
        _Column(
            "CPU ms",
            lambda subject: digits(subject.cpu_ms),
            "CPU time per text, summed over threads; not a measure of energy",
        ),
    ]


def _length_sweep(report: BenchReport) -> list[_Column]:
    def at(position: int, length: int) -> Callable[[SubjectResult], str]:
        def write(subject: SubjectResult) -> str:
            truncated = subject.facts.max_tokens is not None and length > subject.facts.max_tokens
            return digits(subject.sweep_at(position).median) + ("*" if truncated else "")

        return write

    return [_Column(f"{length}", at(position, length)) for position, length in enumerate(report.settings.lengths)]


def _cold_start() -> list[_Column]:
    def stage(name: str) -> Callable[[SubjectResult], str]:
        return lambda subject: digits(subject.start_stage_ms(name))

    return [
        _Column(
            "ms",
            lambda subject: digits(subject.start_ms.median),
            "median time from process start to the first embedding, files in the page cache; then its stages",
        ),
        _Column(QUARTILES, lambda subject: quartiles(subject.start_ms), "first and third quartile"),
        _Column("Python", stage("interpreter"), "interpreter start"),
        _Column("import", stage("import"), "importing packages"),
        _Column("load", stage("load"), "loading the model"),
        _Column("first text", stage("first_call"), "encoding the first text"),
    ]


def _memory() -> list[_Column]:
    return [
        _Column(
            "resident MB",
            lambda subject: megabytes(subject.resident_bytes),
            "resident set size of the whole process, Python included, after all texts",
        ),
        _Column("peak MB", lambda subject: megabytes(subject.peak_bytes), "peak resident set size"),
    ]


def _energy(report: BenchReport) -> list[_Column]:
    domains = dict.fromkeys(domain for subject in report for domain in subject.energy.domains_mj())

    def of_domain(domain: str) -> Callable[[SubjectResult], str]:
        return lambda subject: _median_or_not(subject.energy.domains_mj().get(domain))

    return [
        _Column(
            "mJ",
            lambda subject: _median_or_not(subject.energy.mj_per_inference),
            "median millijoules per text, idle power included",
        ),
        _Column(QUARTILES, lambda subject: _quartiles_or_missing(subject.energy.mj_per_inference), "its quartiles"),
        _Column(
            "above idle mJ",
            lambda subject: _median_or_not(subject.energy.mj_above_idle),
            "the same minus idle power",
        ),
        *(_Column(f"{domain} mJ", of_domain(domain)) for domain in domains),
        _Column("idle W", _idle_power, "idle power before and after"),
    ]


def _quality(report: BenchReport) -> list[_Column]:
    def score(task: str) -> Callable[[SubjectResult], str]:
        return lambda subject: fixed(subject.quality.get(task), 1)

    return [
        *(_Column(title, score(task), metric) for task, (title, metric) in _task_titles(report.tasks).items()),
        _Column("mean", lambda subject: fixed(report.mean_quality(subject.name), 1), "mean of the scores, 0 to 100"),
        _Column(
            "relative",
            lambda subject: percent(report.quality_percent(subject.name)),
            f"mean as a percentage of that of {report.baseline}",
        ),
    ]


def _task_titles(tasks: list[str]) -> dict[str, tuple[str, str]]:
    """Split tasks such as "stsb/dev (Spearman x100)" into a header and its metric, where the headers stay unique."""
    split = {task: task.removesuffix(")").partition(" (") for task in tasks if task.endswith(")")}
    names = Counter(split[task][0] if task in split else task for task in tasks)
    return {
        task: (split[task][0], split[task][2]) if task in split and names[split[task][0]] == 1 else (task, "")
        for task in tasks
    }


def _table(report: BenchReport, title: str, columns: list[_Column], legends: Mapping[str, str]) -> Table:
    cells = {column: [column.write(subject) for subject in report] for column in columns}
    kept = [column for column, texts in cells.items() if not {MISSING, NOT_MEASURED}.issuperset(texts)]
    rows = zip([subject.name for subject in report], *(cells[column] for column in kept), strict=True)
    meanings = [f"{column.title}: {column.meaning}" for column in kept if column.meaning]
    headers = ("subject", *(column.title for column in kept))
    return Table(title, headers, tuple(rows), "; ".join(meanings) or legends.get(title, ""))


def _backbone_parameters(subject: SubjectResult) -> int | None:
    total, embeddings = subject.facts.parameters, subject.facts.embedding_parameters
    return None if total is None or embeddings is None else total - embeddings


def _dependency_bytes(subject: SubjectResult) -> int | None:
    footprint = subject.facts.footprint_bytes
    return None if footprint is None else sum(footprint.values())


def _median_or_not(samples: Spread | None) -> str:
    return NOT_MEASURED if samples is None else digits(samples.median)


def _quartiles_or_missing(samples: Spread | None) -> str:
    return MISSING if samples is None else quartiles(samples)


def _idle_power(subject: SubjectResult) -> str:
    idle = subject.energy.idle
    return MISSING if idle is None else f"{digits(idle.before_w)}, {digits(idle.after_w)}"
