"""Content of a report as text: summary sentences, warnings, tables, and notes on method and machine."""

from collections.abc import Mapping
from dataclasses import dataclass

from edgeembed_runtime.errors import one_line

from edgeembed_bench.render.columns import build_tables
from edgeembed_bench.render.tables import (
    MISSING,
    NOT_MEASURED,
    Table,
    bounds,
    digits,
    fixed,
    interval,
    megabytes,
    ratio,
)
from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.results import SubjectResult
from edgeembed_bench.stats import MIN_FOR_TEST, SignificanceTest

_MAX_OVERHEAD = 0.02
_KEPT = {"kept": "yes", "exceeded": "NO", "unclear": "unclear", "not measured": NOT_MEASURED}
# The instruction sets that determine the speed of matrix multiplication.
_RELEVANT_FLAGS = ("avx", "amx", "fma", "asimd", "sve", "i8mm", "bf16")


@dataclass(frozen=True)
class Content:
    """A report as text without unprintable characters, before it is formatted for the terminal, Markdown or HTML.

    Attributes:
        summary: One sentence per subject by its name, the baseline first.
        warnings: Reasons why the results may be unreliable, one line each.
        tables: The tables.
        notes: Lines on missing measurements, the method, the machine and the subjects, by heading.
    """

    summary: Mapping[str, str]
    warnings: list[str]
    tables: list[Table]
    notes: Mapping[str, list[str]]


def build_content(report: BenchmarkReport) -> Content:
    """Build the text and the tables of a report.

    Args:
        report: The report.

    Returns:
        The content that all renderers share.
    """
    tests = {
        subject.name: report.compare_latency(subject.name) for subject in report if subject.name != report.baseline
    }
    tables = [*build_tables(report, tests), *_limits(report)]
    # A report of another machine must not control this terminal.
    return Content(
        {name: one_line(sentence) for name, sentence in _summary(report, tests).items()},
        list(map(one_line, _warnings(report, tests))),
        tables,
        {heading: list(map(one_line, lines)) for heading, lines in _notes(report).items()},
    )


def _summary(report: BenchmarkReport, tests: Mapping[str, SignificanceTest]) -> dict[str, str]:
    sentences = {report.baseline: _baseline_sentence(report)}
    return sentences | {name: _sentence(report, report[name], test) for name, test in tests.items()}


def _baseline_sentence(report: BenchmarkReport) -> str:
    baseline = report[report.baseline]
    size_bytes, score = baseline.size.size_bytes, report.mean_quality(baseline.name)
    facts = [
        f"a median latency of {digits(baseline.latency.median)} ms per text",
        f"{megabytes(size_bytes)} MB on disk" if size_bytes else "",
        f"a mean quality score of {fixed(score, 1)}" if score is not None else "",
    ]
    role = " (baseline)" if len(report.subjects) > 1 else ""
    return f"{baseline.name}{role} has {_enumerate([fact for fact in facts if fact])}."


def _sentence(report: BenchmarkReport, subject: SubjectResult, test: SignificanceTest) -> str:
    facts = [fact for fact in (_size_fact(report, subject), _quality_fact(report, subject)) if fact]
    if test.is_significant is False:
        lead = (
            f"No difference detected in latency between {subject.name} and {report.baseline} "
            f"(ratio {ratio(test.ratio.value)}, 95 % CI {interval(test.ratio)})"
        )
        return f"{lead}; {subject.name} {_enumerate(facts)}." if facts else f"{lead}."
    return f"{subject.name} {_enumerate([_latency_fact(test, report.baseline), *facts])}."


def _latency_fact(test: SignificanceTest, baseline: str) -> str:
    value = test.ratio.value
    if test.is_significant is None:
        return f"has a latency ratio to {baseline} of {ratio(value)} ({_interval(test)}significance not tested)"
    speed = f"{_factor(1 / value)}x faster" if value < 1 else f"{_factor(value)}x slower"
    return f"is {speed} than {baseline} (latency ratio {ratio(value)}, 95 % CI {interval(test.ratio)})"


def _interval(test: SignificanceTest) -> str:
    return "" if test.ratio.low is None else f"95 % CI {interval(test.ratio)}, "


def _size_fact(report: BenchmarkReport, subject: SubjectResult) -> str:
    own, other = subject.size.size_bytes, report[report.baseline].size.size_bytes
    if not own:
        return ""
    if not other:
        return f"takes {megabytes(own)} MB"
    multiple = f"{_share(own / other)} of" if own <= other else f"{_factor(own / other)}x"
    return f"has {multiple} the baseline's size ({megabytes(own)} MB)"


def _quality_fact(report: BenchmarkReport, subject: SubjectResult) -> str:
    relative, score = report.quality_percent(subject.name), report.mean_quality(subject.name)
    if relative is None:
        return ""
    scores = f"{fixed(score, 1)} against {fixed(report.mean_quality(report.baseline), 1)}"
    return f"reaches {_share(relative / 100)} of the baseline's mean score ({scores})"


def _enumerate(facts: list[str]) -> str:
    if len(facts) < 3:
        return " and ".join(facts)
    return f"{', '.join(facts[:-1])}, and {facts[-1]}"


def _factor(value: float) -> str:
    """Format a factor of at least 1 with two or three significant digits."""
    if value < 1.1:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _share(value: float) -> str:
    """Format a share as a percentage, with one decimal below 1 %."""
    return f"{100 * value:.{1 if value < 0.01 else 0}f} %"


def _warnings(report: BenchmarkReport, tests: Mapping[str, SignificanceTest]) -> list[str]:
    return [*report.load.reasons, *_noise(tests), *_untested(report), *_overhead(report)]


def _noise(tests: Mapping[str, SignificanceTest]) -> list[str]:
    # `_untested` warns about differences that were not tested.
    noisy = [
        f"{_share(test.min_detectable_effect)} ({name})"
        for name, test in tests.items()
        if test.is_noisy and test.min_detectable_effect is not None and test.is_significant is not None
    ]
    if not noisy:
        return []
    line = (
        f"latency differences from the baseline smaller than {_enumerate(noisy)} cannot be detected reliably in this "
        "run: close other programs, or raise --runs or --processes"
    )
    return [line]


def _untested(report: BenchmarkReport) -> list[str]:
    if len(report.subjects) < 2 or report.settings.processes >= MIN_FOR_TEST:
        return []
    line = (
        f"latency differences were not tested for significance: the test needs {MIN_FOR_TEST} processes per "
        f"subject, this run had {report.settings.processes}; raise --processes"
    )
    return [line]


def _overhead(report: BenchmarkReport) -> list[str]:
    shortest = min(report, key=lambda subject: subject.latency.median)
    if shortest.timer_share <= _MAX_OVERHEAD:
        return []
    return [f"{_share(shortest.timer_share)} of the latency of {shortest.name} is the overhead of the benchmark"]


def _limits(report: BenchmarkReport) -> list[Table]:
    """Return a table with a row per limit and subject, if there are limits."""
    rows = [
        (
            check.subject,
            check.quantity,
            MISSING if check.measured is None else fixed(check.measured.value, 2),
            bounds(check.measured, 2),
            f"{check.limit:g}",
            _KEPT[check.result],
        )
        for check in report.limit_checks()
    ]
    legend = (
        'kept: "unclear" if the 95 % interval contains the limit, or if there is no interval and the value keeps the '
        'limit; "NO" and "not measured" fail the run'
    )
    columns = ("subject", "quantity", "measured", "95 % CI", "limit", "kept")
    return [Table("Limits", columns, tuple(rows), legend)] if rows else []


def _notes(report: BenchmarkReport) -> dict[str, list[str]]:
    notes = {
        "Not measured": _missing(report),
        "Method": _method(report),
        "Machine": _machine(report),
        "Subjects": [*_floor_note(report), *(_versions(subject) for subject in report)],
    }
    return {heading: lines for heading, lines in notes.items() if lines}


def _floor_note(report: BenchmarkReport) -> list[str]:
    return [] if report.floor is None else [f"{report.floor.subject.name}: a process that {report.floor.subject.note}"]


def _missing(report: BenchmarkReport) -> list[str]:
    lines = [
        *_grouped("energy", {subject.name: subject.energy.reason for subject in report}),
        *_grouped("energy", {subject.name: "; ".join(subject.energy.discarded) or None for subject in report}),
        *_grouped("size", {subject.name: subject.size.reason for subject in report}),
        *(
            f"limit on {check.quantity} of {check.subject}: {check.reason}"
            for check in report.limit_checks()
            if check.reason
        ),
    ]
    if not report.tasks:
        lines.append("quality: pass --sts or --retrieval")
    if not report.settings.lengths:
        lines.append("latency by length: turned off, or no subject reports token counts")
    if not report.settings.batches:
        lines.append("throughput: the run had no batches")
    return lines + [f"{name} left out: {reason}" for name, reason in report.left_out.items()]


def _grouped(topic: str, by_subject: Mapping[str, str | None]) -> list[str]:
    """Return one line per distinct message, with the names of its subjects unless all subjects have it."""
    subjects: dict[str, list[str]] = {}
    for name, message in by_subject.items():
        if message is not None:
            subjects.setdefault(message, []).append(name)
    return [
        f"{topic}: {message}" if len(group) == len(by_subject) else f"{topic} of {', '.join(group)}: {message}"
        for message, group in subjects.items()
    ]


def _method(report: BenchmarkReport) -> list[str]:
    settings, texts = report.settings, report.texts
    threads = "one thread and one core" if settings.threads == 1 else f"{settings.threads} threads and as many cores"
    sources = {subject.name: subject.energy.source for subject in report}
    return [
        (
            f"{settings.runs:,} single texts per subject, tokenization included, in {settings.processes} fresh "
            f"processes; subjects take turns of {settings.block} texts in shuffled order (seed {settings.seed}), after "
            f"{settings.warmup} warm-up calls per process and about {settings.settle_ms:g} ms of warm-up calls per "
            f"turn; {threads} each"
        ),
        (
            f"{texts.count:,} different texts from {texts.source}, {texts.mean_characters:.0f} characters on average, "
            f"SHA-256 {texts.sha256}"
        ),
        *_grouped("energy", {name: source and f"read from {source}" for name, source in sources.items()}),
    ]


def _machine(report: BenchmarkReport) -> list[str]:
    machine = report.machine
    flags = [flag for flag in machine.flags if flag.startswith(_RELEVANT_FLAGS)]
    versions = [f"{name} {version}" for name, version in machine.versions.items() if version is not None]
    load = "unknown" if report.load.load_average is None else f"{report.load.load_average:.2f}"
    cores = "pinning is not supported" if report.cores is None else f"core {', '.join(map(str, report.cores))}"
    return [
        (
            f"{machine.cpu}, {machine.available_cores} of {machine.cores} logical cores available, "
            f"{machine.ram_bytes / 2**30:.0f} GiB of memory"
        ),
        *([f"instruction sets: {' '.join(flags)}"] if flags else []),
        (
            f"CPU frequency governor: {machine.governor or 'unknown'}; load average before the run: {load}; pinned to: "
            f"{cores}"
        ),
        f"{machine.system}, Python {machine.python}, {', '.join(versions)}",
        f"date: {report.created_utc}",
    ]


def _versions(subject: SubjectResult) -> str:
    info = subject.info
    versions = [f"Python {info.python}", *(f"{name} {version}" for name, version in info.versions.items())]
    note = f"{subject.subject.note}; " if subject.subject.note else ""
    return f"{subject.name}: {note}{subject.subject.adapter}, {', '.join(versions)}"
