"""The figures of a report by theme, as text in rows: made once, shown in a terminal, in Markdown and on a page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edgeembed_bench.estimates import Spread
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
from edgeembed_bench.show.standings import word
from edgeembed_bench.verdicts import Verdict


@dataclass(frozen=True)
class Table:
    """Some figures of all subjects.

    Attributes:
        title: What they are about.
        columns: Their titles; the first is that of the subjects' names.
        rows: A subject each: its name, then its figures.
        reading: How to read them.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    reading: str


@dataclass(frozen=True)
class _Column:
    """A column before it is filled.

    Attributes:
        title: Its title.
        write: Gives a subject's figure.
        reading: What the figure is, unless the title says that.
    """

    title: str
    write: Callable[[SubjectResult], str]
    reading: str = ""


def tables(report: BenchReport, beside: Mapping[str, Verdict]) -> list[Table]:
    """Lay a report out.

    Args:
        report: What a run found.
        beside: Its subjects beside the baseline.

    Returns:
        The tables of which something was measured, without the columns of which nothing was.
    """
    counted_by = (
        f"median milliseconds of a text of so many tokens, as the tokenizer of {report.settings.lengths_by} counts "
        "them; *: longer than the subject reads, and cut by it"
    )
    columns = {
        "At a glance": _glance(report, beside),
        "Size": _size(),
        "Time of one text": _latency(),
        "Time by length": _sweep(report),
        "Start": _start(),
        "Memory": _memory(),
        "Energy": _energy(report),
        "Quality": _quality(report),
    }
    leads = {"Time by length": counted_by}
    found = [_table(report, title, theme, leads.get(title, "")) for title, theme in columns.items()]
    return [table for table in found if len(table.columns) > 1]


def _glance(report: BenchReport, beside: Mapping[str, Verdict]) -> list[_Column]:
    def standing(write: Callable[[Verdict], str]) -> Callable[[SubjectResult], str]:
        return lambda subject: write(beside[subject.name]) if subject.name in beside else MISSING

    base = report.baseline
    return [
        _Column("MB", lambda subject: megabytes(subject.size.size_bytes), "10^6 bytes on disk"),
        _Column("ms", lambda subject: digits(subject.latency.median), "median time of one text, tokenizing included"),
        _Column("× base", standing(lambda found: ratio(found.ratio.value)), f"ms as a multiple of {base}'s"),  # noqa: RUF001  # times
        _Column(
            "95 %",
            standing(lambda found: MISSING if found.differs is None else interval(found.ratio)),
            "between what that lies",
        ),
        _Column("verdict", standing(word), f"beside {base}, at the 1 % level over processes"),
        _Column(
            "texts/s",
            lambda subject: counted(report.sentences_per_s(subject.name)),
            f"in batches of {report.settings.batch_size}",
        ),
        _Column(
            "quality",
            lambda subject: _percent(report.quality_percent(subject.name)),
            f"mean score as a share of {base}'s",
        ),
    ]


def _size() -> list[_Column]:
    return [
        _Column("MB", lambda subject: megabytes(subject.size.size_bytes), "the files that running it needs"),
        _Column("download MB", lambda subject: megabytes(subject.size.download_bytes), "the same compressed"),
        _Column("params", lambda subject: millions(subject.facts.parameters), "numbers that the model holds"),
        _Column(
            "w/o tables",
            lambda subject: millions(_inner_parameters(subject)),
            "those in no table of token, position or token type vectors",
        ),
        _Column("tokens", lambda subject: counted(subject.facts.vocabulary), "those in its vocabulary"),
        _Column("dims", lambda subject: str(subject.facts.dimension), "numbers a vector"),
        _Column(
            "packages MB",
            lambda subject: megabytes(_footprint_bytes(subject)),
            "what its Python packages and all that they need take once installed",
        ),
    ]


def _latency() -> list[_Column]:
    return [
        _Column("ms", lambda subject: digits(subject.latency.median), "median"),
        _Column("q1–q3", lambda subject: quartiles(subject.latency), "its quartiles"),  # noqa: RUF001  # a range
        _Column("p99 ms", lambda subject: digits(subject.p99_ms), "99 of 100 texts take less"),
        _Column("tokenize ms", lambda subject: digits(subject.part_ms("tokenize")), "that part alone"),
        _Column("run ms", lambda subject: digits(subject.part_ms("run")), "the model alone, on the tokens"),
        _Column(
            "processor ms",
            lambda subject: digits(subject.cpu_ms),
            "processor time of a text, all threads together; it is no energy",
        ),
    ]


def _sweep(report: BenchReport) -> list[_Column]:
    def at(position: int, length: int) -> Callable[[SubjectResult], str]:
        def write(subject: SubjectResult) -> str:
            is_cut = subject.facts.max_tokens is not None and length > subject.facts.max_tokens
            return digits(subject.sweep_at(position).median) + ("*" if is_cut else "")

        return write

    return [
        _Column(f"{length} tokens", at(position, length)) for position, length in enumerate(report.settings.lengths)
    ]


def _start() -> list[_Column]:
    def stage(name: str) -> Callable[[SubjectResult], str]:
        return lambda subject: digits(subject.start_stage_ms(name))

    return [
        _Column(
            "cold start ms",
            lambda subject: digits(subject.start_ms.median),
            "from nothing to the first vector in a fresh process, its files read shortly before; then its stages",
        ),
        _Column("q1–q3", lambda subject: quartiles(subject.start_ms)),  # noqa: RUF001  # a range
        _Column("Python", stage("interpreter"), "until it runs"),
        _Column("import", stage("import"), "its packages"),
        _Column("load", stage("load"), "the model"),
        _Column("first text", stage("first_call")),
    ]


def _memory() -> list[_Column]:
    return [
        _Column(
            "resident MB",
            lambda subject: megabytes(subject.resident_bytes),
            "of the whole process, Python included, after all texts",
        ),
        _Column("peak MB", lambda subject: megabytes(subject.peak_bytes), "the most that it ever held"),
    ]


def _energy(report: BenchReport) -> list[_Column]:
    domains = dict.fromkeys(domain for subject in report for domain in subject.energy.domains_mj())

    def of_domain(domain: str) -> Callable[[SubjectResult], str]:
        return lambda subject: _median_or_not(subject.energy.domains_mj().get(domain))

    return [
        _Column(
            "mJ",
            lambda subject: _median_or_not(subject.energy.mj_per_inference),
            "millijoules a text of all that the counter saw, the machine's idle power included",
        ),
        _Column("q1–q3", lambda subject: _quartiles_or_none(subject.energy.mj_per_inference)),  # noqa: RUF001  # a range
        _Column(
            "above idle mJ",
            lambda subject: _median_or_not(subject.energy.mj_above_idle),
            "less what the machine would have used doing nothing",
        ),
        *(_Column(f"{domain} mJ", of_domain(domain)) for domain in domains),
        _Column("idle W", _idle, "the machine's power before and after, doing nothing"),
    ]


def _quality(report: BenchReport) -> list[_Column]:
    def score(task: str) -> Callable[[SubjectResult], str]:
        return lambda subject: fixed(subject.quality.get(task), 1)

    return [
        *(_Column(task, score(task)) for task in report.tasks),
        _Column("mean", lambda subject: fixed(report.mean_quality(subject.name), 1), "of scores of 0 to 100"),
        _Column(
            "of base",
            lambda subject: _percent(report.quality_percent(subject.name)),
            f"mean as a share of {report.baseline}'s",
        ),
    ]


def _table(report: BenchReport, title: str, columns: list[_Column], lead: str) -> Table:
    cells = {column: [column.write(subject) for subject in report] for column in columns}
    kept = [column for column, texts in cells.items() if not {MISSING, NOT_MEASURED}.issuperset(texts)]
    rows = zip([subject.name for subject in report], *(cells[column] for column in kept), strict=True)
    readings = [f"{column.title}: {column.reading}" for column in kept if column.reading]
    return Table(title, ("subject", *(column.title for column in kept)), tuple(rows), "; ".join(readings) or lead)


def _inner_parameters(subject: SubjectResult) -> int | None:
    whole, embeddings = subject.facts.parameters, subject.facts.embedding_parameters
    return None if whole is None or embeddings is None else whole - embeddings


def _footprint_bytes(subject: SubjectResult) -> int | None:
    footprint = subject.facts.footprint_bytes
    return None if footprint is None else sum(footprint.values())


def _median_or_not(found: Spread | None) -> str:
    return NOT_MEASURED if found is None else digits(found.median)


def _quartiles_or_none(found: Spread | None) -> str:
    return MISSING if found is None else quartiles(found)


def _idle(subject: SubjectResult) -> str:
    idle = subject.energy.idle
    return MISSING if idle is None else f"{digits(idle.before_w)}, {digits(idle.after_w)}"


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f} %"
