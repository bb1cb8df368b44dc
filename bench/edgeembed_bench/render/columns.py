"""The tables of a report, with the columns of each: header, meaning and the cell of a subject."""

from collections import Counter
from collections.abc import Callable, Mapping

from edgeembed_bench.render.tables import (
    MISSING,
    Column,
    Table,
    bounds,
    counted,
    digits,
    fill_table,
    fixed,
    interval,
    median_or_not_measured,
    megabytes,
    millions,
    percent,
    quartiles,
    quartiles_or_missing,
    ratio,
)
from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.results import SubjectResult
from edgeembed_bench.stats import Interval, SignificanceTest

_QUARTILES = "Q1–Q3"  # noqa: RUF001  # an en dash


def build_tables(report: BenchmarkReport, tests: Mapping[str, SignificanceTest]) -> list[Table]:
    """Build the tables of a report with a row per subject; columns and tables without any data are left out.

    Args:
        report: The report.
        tests: Latency comparison with the baseline, by subject name.

    Returns:
        The tables, the overview first.
    """
    sweep = (
        "median milliseconds per text; the header is the length of the text in tokens, counted by the tokenizer of "
        f"{report.texts.counted_by}; *: truncated to the subject's maximum length"
    )
    tables = (
        fill_table(report, "Overview", _overview(report, tests)),
        fill_table(report, "Size", _size()),
        fill_table(report, "Latency", _latency()),
        fill_table(report, "Latency by length", _length_sweep(report), sweep),
        fill_table(report, "Call overhead", _call_overhead()),
        fill_table(report, "Cold start", _cold_start(report)),
        fill_table(report, "Memory", _memory(report)),
        fill_table(report, "Energy", _energy(report)),
        fill_table(report, "Quality", _quality(report)),
    )
    return [table for table in tables if len(table.columns) > 1]


def _overview(report: BenchmarkReport, tests: Mapping[str, SignificanceTest]) -> list[Column]:
    def compared(write: Callable[[SignificanceTest], str]) -> Callable[[SubjectResult], str]:
        return lambda subject: write(tests[subject.name]) if subject.name in tests else MISSING

    base = report.baseline
    return [
        Column("MB", lambda subject: megabytes(subject.size.size_bytes), "size on disk in 10^6 bytes"),
        Column("ms", lambda subject: digits(subject.latency.median), "median latency of one text, with tokenization"),
        Column(
            "ratio",
            compared(lambda each: ratio(each.ratio.value)),
            f"latency divided by that of {base} on the same texts: median over texts, geometric mean over processes",
        ),
        Column(
            "95 % CI",
            compared(lambda each: interval(each.ratio)),
            "confidence interval of the ratio",
        ),
        Column("difference", compared(_difference), "t-test of the ratio over processes, 1 % level"),
        Column(
            "texts/s",
            lambda subject: counted(report.sentences_per_s(subject.name)),
            f"throughput at batch size {report.settings.batch_size}",
        ),
        Column(
            "quality",
            lambda subject: percent(report.quality_percent(subject.name)),
            f"mean score as a percentage of that of {base}",
        ),
    ]


def _difference(test: SignificanceTest) -> str:
    if test.is_significant is None:
        return "not tested"
    if not test.is_significant:
        return "none detected"
    return "faster" if test.ratio.value < 1 else "slower"


def _size() -> list[Column]:
    return [
        Column("MB", lambda subject: megabytes(subject.size.size_bytes), "size of the files that the model needs"),
        Column(
            "zip MB", lambda subject: megabytes(subject.size.download_bytes), "the same files, compressed with deflate"
        ),
        Column("params", lambda subject: millions(subject.info.parameters), "number of parameters"),
        Column(
            "backbone",
            lambda subject: millions(_backbone_parameters(subject)),
            "parameters except those of the token, position and token type embeddings",
        ),
        Column("vocab", lambda subject: counted(subject.info.vocabulary_size), "vocabulary size"),
        Column("dim", lambda subject: str(subject.info.dimension), "embedding dimension"),
        Column(
            "space",
            lambda subject: subject.info.space or MISSING,
            "embedding space that a bundle states; embeddings of one space may be compared",
        ),
        Column(
            "deps MB",
            lambda subject: megabytes(_dependency_bytes(subject)),
            "installed size of the subject's Python packages and their dependencies",
        ),
    ]


def _latency() -> list[Column]:
    return [
        Column("ms", lambda subject: digits(subject.latency.median), "median of single texts"),
        Column(_QUARTILES, lambda subject: quartiles(subject.latency), "first and third quartile"),
        Column("p99 ms", lambda subject: digits(subject.p99_ms), "99th percentile"),
        Column("tokenize ms", lambda subject: digits(subject.part_ms("tokenize")), "tokenization alone"),
        Column("model ms", lambda subject: digits(subject.part_ms("run")), "the model alone, on token ids"),
        Column(
            "CPU ms",
            lambda subject: digits(subject.cpu_ms),
            "CPU time per text, summed over threads; not a measure of energy",
        ),
    ]


def _length_sweep(report: BenchmarkReport) -> list[Column]:
    def at(position: int, length: int) -> Callable[[SubjectResult], str]:
        def write(subject: SubjectResult) -> str:
            truncated = subject.info.max_tokens is not None and length > subject.info.max_tokens
            return digits(subject.sweep_at(position).median) + ("*" if truncated else "")

        return write

    return [Column(f"{length}", at(position, length)) for position, length in enumerate(report.settings.lengths)]


def _call_overhead() -> list[Column]:
    def part(name: str) -> Callable[[SubjectResult], str]:
        def write(subject: SubjectResult) -> str:
            median_ms = subject.part_ms(name)
            return MISSING if median_ms is None or subject.call_overhead_us is None else digits(1e3 * median_ms)

        return write

    return [
        Column("encode us", part("encode"), "median of the whole call with one text"),
        Column(
            "bare us",
            part("bare"),
            "median of tokenization, input arrays and model alone, without the encoder around them",
        ),
        Column("tokenize us", part("tokenize")),
        Column("model us", part("run")),
        Column(
            "added us",
            lambda subject: MISSING if (added := subject.call_overhead_us) is None else fixed(added.value, 1),
            "encode minus bare: mean over processes of the median difference over texts",
        ),
        Column("95 % CI", lambda subject: bounds(subject.call_overhead_us, 1), "confidence interval of added us"),
    ]


def _cold_start(report: BenchmarkReport) -> list[Column]:
    def stage(title: str, name: str, meaning: str) -> Column:
        return Column(
            title,
            lambda subject: digits(subject.start_stage_ms(name)),
            meaning,
            lambda floor: digits(floor.start_stage_ms(name)),
        )

    return [
        Column(
            "ms",
            lambda subject: digits(subject.start_ms.median),
            "median time from process start to the first embedding, files in the page cache; then its stages in ms",
            lambda floor: digits(floor.start_ms.median),
        ),
        Column(
            _QUARTILES,
            lambda subject: quartiles(subject.start_ms),
            "first and third quartile",
            lambda floor: quartiles(floor.start_ms),
        ),
        stage("Python", "interpreter", "interpreter start"),
        stage("import", "import", "importing packages"),
        stage("load", "load", "loading the model"),
        stage("first text", "first_call", "encoding the first text"),
        *_floor_ratio(report.start_ratio),
    ]


def _memory(report: BenchmarkReport) -> list[Column]:
    return [
        Column(
            "start MB",
            lambda subject: megabytes(subject.start_resident_bytes),
            "resident memory of the whole process, Python included, after the first text",
            lambda floor: megabytes(floor.start_resident_bytes),
        ),
        Column(
            "start peak MB",
            lambda subject: megabytes(subject.start_peak_bytes),
            "peak resident memory until then",
            lambda floor: megabytes(floor.start_peak_bytes),
        ),
        *_floor_ratio(report.memory_ratio),
        Column(
            "resident MB",
            lambda subject: megabytes(subject.resident_bytes),
            "resident memory after all texts",
        ),
        Column("peak MB", lambda subject: megabytes(subject.peak_bytes), "peak resident memory until then"),
    ]


def _floor_ratio(measure: Callable[[str], Interval | None]) -> list[Column]:
    def value(subject: SubjectResult) -> str:
        ratios = measure(subject.name)
        return MISSING if ratios is None else fixed(ratios.value, 2)

    return [
        Column("x floor", value, "ratio to the floor, geometric mean over processes"),
        Column("95 % CI", lambda subject: bounds(measure(subject.name), 2), "confidence interval of x floor"),
    ]


def _energy(report: BenchmarkReport) -> list[Column]:
    domains = dict.fromkeys(domain for subject in report for domain in subject.energy.domains_mj())

    def of_domain(domain: str) -> Callable[[SubjectResult], str]:
        return lambda subject: median_or_not_measured(subject.energy.domains_mj().get(domain))

    return [
        Column(
            "mJ",
            lambda subject: median_or_not_measured(subject.energy.mj_per_inference),
            "median millijoules per text, idle power included",
        ),
        Column(
            _QUARTILES,
            lambda subject: quartiles_or_missing(subject.energy.mj_per_inference),
            "first and third quartile",
        ),
        Column(
            "above idle mJ",
            lambda subject: median_or_not_measured(subject.energy.mj_above_idle),
            "the same above idle power",
        ),
        *(Column(f"{domain} mJ", of_domain(domain)) for domain in domains),
        Column("idle W", _idle_power, "idle power before and after the run"),
    ]


def _quality(report: BenchmarkReport) -> list[Column]:
    def score(task: str) -> Callable[[SubjectResult], str]:
        return lambda subject: fixed(subject.quality.get(task), 1)

    return [
        *(Column(title, score(task), metric) for task, (title, metric) in _task_titles(report.tasks).items()),
        Column("mean", lambda subject: fixed(report.mean_quality(subject.name), 1), "mean of the scores, 0 to 100"),
        Column(
            "relative",
            lambda subject: percent(report.quality_percent(subject.name)),
            f"mean as a percentage of that of {report.baseline}",
        ),
    ]


def _task_titles(tasks: list[str]) -> dict[str, tuple[str, str]]:
    """Split tasks such as "stsb/dev (Spearman x100)" into header and metric, unless two headers would be equal."""
    split = {task: task.removesuffix(")").partition(" (") for task in tasks if task.endswith(")")}
    names = Counter(split[task][0] if task in split else task for task in tasks)
    return {
        task: (split[task][0], split[task][2]) if task in split and names[split[task][0]] == 1 else (task, "")
        for task in tasks
    }


def _backbone_parameters(subject: SubjectResult) -> int | None:
    total, embeddings = subject.info.parameters, subject.info.embedding_parameters
    return None if total is None or embeddings is None else total - embeddings


def _dependency_bytes(subject: SubjectResult) -> int | None:
    installed_bytes = subject.info.installed_bytes
    return None if installed_bytes is None else sum(installed_bytes.values())


def _idle_power(subject: SubjectResult) -> str:
    idle = subject.energy.idle
    return MISSING if idle is None else f"{digits(idle.before_w)}, {digits(idle.after_w)}"
