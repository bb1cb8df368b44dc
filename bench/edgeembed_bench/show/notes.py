"""What it takes to read the figures: what to doubt, what is missing and why, how and where it was measured."""

from collections.abc import Mapping

from edgeembed_bench.formats import names
from edgeembed_bench.report import BenchReport, SubjectResult
from edgeembed_bench.verdicts import FEWEST_PROCESSES, Verdict

CARE = "Read with care"
_MOST_OVERHEAD = 0.02
# Of all that a processor says it has, what decides how fast matrices are multiplied.
_TELLING_FLAGS = ("avx", "amx", "fma", "asimd", "sve", "i8mm", "bf16")


def notes(report: BenchReport, beside: Mapping[str, Verdict]) -> dict[str, list[str]]:
    """Write the notes.

    Args:
        report: What a run found.
        beside: Its subjects beside the baseline.

    Returns:
        Lines by heading; no heading without lines.
    """
    found = {
        CARE: [*report.load.reasons, *_noise(beside), *_untested(report), *_overhead(report)],
        "Not measured": [*_missing_energy(report), *_missing_sizes(report), *_missing_rest(report)],
        "How it was measured": [_method(report), _texts(report), *_energy_sources(report)],
        "Where": [*_machine(report)],
        "Subjects": [_subject(subject) for subject in report],
    }
    return {heading: lines for heading, lines in found.items() if lines}


def _noise(beside: Mapping[str, Verdict]) -> list[str]:
    return [
        f"{name}: differences of latency below {found.smallest_seen:.0%} cannot be told apart here: "
        "close other programs, or raise --runs or --processes"
        for name, found in beside.items()
        if found.is_noisy and found.differs is not None  # what was not tested has a note of its own
    ]


def _untested(report: BenchReport) -> list[str]:
    if len(report.subjects) < 2 or report.settings.processes >= FEWEST_PROCESSES:
        return []
    line = (
        f"whether latencies differ was not tested: that takes {FEWEST_PROCESSES} processes a subject, "
        f"this run had {report.settings.processes}; raise --processes"
    )
    return [line]


def _overhead(report: BenchReport) -> list[str]:
    shortest = min(report, key=lambda subject: subject.latency.median)
    if shortest.overhead_share <= _MOST_OVERHEAD:
        return []
    return [f"{shortest.overhead_share:.0%} of the latency of {shortest.name} is the bench's own call, not the encoder"]


def _missing_energy(report: BenchReport) -> list[str]:
    reasons = {subject.name: subject.energy.reason for subject in report}
    return _grouped("energy", reasons)


def _missing_sizes(report: BenchReport) -> list[str]:
    return _grouped("size", {subject.name: subject.size.reason for subject in report})


def _missing_rest(report: BenchReport) -> list[str]:
    found = []
    if not report.tasks:
        found.append("quality: give --sts or --retrieval")
    if not report.settings.lengths:
        found.append("time by length: left out, or no subject tells how many tokens a text has")
    if not report.settings.batches:
        found.append("texts a second: the run had no batches")
    return found


def _grouped(what: str, said: Mapping[str, str | None]) -> list[str]:
    subjects: dict[str, list[str]] = {}
    for name, line in said.items():
        if line is not None:
            subjects.setdefault(line, []).append(name)
    return [
        f"{what}: {line}" if len(found) == len(said) else f"{what} of {names(found)}: {line}"
        for line, found in subjects.items()
    ]


def _method(report: BenchReport) -> str:
    settings = report.settings
    threads = "one thread" if settings.threads == 1 else f"{settings.threads} threads"
    return (
        f"{settings.runs:,} texts one by one a subject, tokenizing included, in {settings.processes} fresh processes "
        f"and in turns of {settings.block}, shuffled (seed {settings.seed}), after {settings.warmup} calls to warm up "
        f"and about {settings.settle_ms:g} ms of calls to settle each turn; "
        f"{threads} and as many cores each"
    )


def _texts(report: BenchReport) -> str:
    settings = report.settings
    return (
        f"{settings.texts:,} different texts of {settings.texts_from}, {settings.mean_characters:.0f} characters on "
        f"average, SHA-256 {settings.texts_sha256}"
    )


def _energy_sources(report: BenchReport) -> list[str]:
    sources = {subject.name: subject.energy.source for subject in report}
    return _grouped("energy", {name: source and f"read from {source}" for name, source in sources.items()})


def _machine(report: BenchReport) -> list[str]:
    machine = report.machine
    flags = [flag for flag in machine.flags if flag.startswith(_TELLING_FLAGS)]
    versions = [f"{name} {version}" for name, version in machine.versions.items() if version is not None]
    load = "not known" if report.load.load_average is None else f"{report.load.load_average:.2f}"
    cores = f"{machine.cores_allowed} of {machine.cores} cores allowed"
    return [
        f"{machine.cpu}, {cores}, {machine.ram_bytes / 2**30:.0f} GiB of memory",
        *([f"instruction sets: {' '.join(flags)}"] if flags else []),
        f"clock governor: {machine.governor or 'not known'}; load average before: {load}",
        f"{machine.system}, Python {machine.python}, {names(versions)}",
        f"on {report.created_utc}",
    ]


def _subject(subject: SubjectResult) -> str:
    facts = subject.facts
    versions = [f"Python {facts.python}", *(f"{name} {version}" for name, version in facts.versions.items())]
    note = f"{subject.subject.note}; " if subject.subject.note else ""
    return f"{subject.name}: {note}{subject.subject.adapter}, {names(versions)}"
