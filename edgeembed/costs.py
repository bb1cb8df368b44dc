"""Cost and quality of models side by side: the benchmark, with evaluation scores added to its report."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from edgeembed_bench import (
    BenchmarkReport,
    BenchmarkSettings,
    EnergyMeter,
    Subject,
    WorkerEncoder,
    benchmark,
    parse_subjects,
    start_worker,
    this_machine,
)
from edgeembed_bench.paper_tables import PaperTable, cmow_table, hpd_table, simtde_table, xayn_table
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation import Task, read_retrieval, read_sts, read_tasks, score_tasks, search_task
from edgeembed.models import built_in_bundle, find_model
from edgeembed.progress import Reporter, SilentReporter

PAPER_TABLES = ("simtde", "hpd", "xayn", "cmow")


def find_subjects(models: Sequence[str]) -> list[Subject]:
    """Return the subjects of a benchmark by the names that a user gives.

    Args:
        models: Each `[NAME=][KIND:]WHAT[@PYTHON]`, as `edgeembed_bench.parse_subjects` takes them. WHAT may be any name
            that `edgeembed.models.find_model` takes, or the folder of another library's model.

    Returns:
        The subjects, with unique names.

    Raises:
        InputError: If there is no such model.
    """
    return parse_subjects(models, _folder)


def _folder(name: str) -> Path:
    # Folders of other libraries (model2vec, plain ONNX) hold none of the files that find_model expects.
    return built_in_bundle(name) or (Path(name) if Path(name).is_dir() else find_model(name))


def measure_costs(  # noqa: PLR0913  # the options of the benchmark and of the evaluation
    subjects: Sequence[Subject],
    texts: Sequence[str],
    settings: BenchmarkSettings | None = None,
    *,
    texts_from: str,
    baseline: str | None = None,
    floor: Subject | None = None,
    left_out: Mapping[str, str] | None = None,
    sts: Sequence[Path] = (),
    retrieval: Sequence[Path] = (),
    unscored: Collection[str] = (),
    meter: EnergyMeter | None = None,
    reporter: Reporter | None = None,
) -> BenchmarkReport:
    """Measure the cost of encoders, and their quality.

    Args:
        subjects: The encoders.
        texts: Texts to encode.
        settings: How much is measured.
        texts_from: Where the texts come from, for the report.
        baseline: Name of the subject that the others are compared with; the first if absent.
        floor: A subject of the adapter "nothing", with which cold start and memory are compared.
        left_out: Reason for each subject that is not measured, by name, for the report.
        sts: Files of scored sentence pairs and folders of them, as `read_tasks` takes them.
        retrieval: Retrieval sets, as `read_retrieval` takes them.
        unscored: Names of subjects that are not evaluated, such as a model of random weights.
        meter: Energy meter; that of this machine if absent.
        reporter: Receives the progress of the evaluation.

    Returns:
        The report, with the scores.

    Raises:
        InputError: If a file, a subject or a number is not usable; files are read before anything is measured.
        CheckError: If a subject fails.
    """
    unknown = set(unscored) - {subject.name for subject in subjects}
    if unknown:
        raise InputError(f"{min(unknown)} is not among the subjects: {', '.join(each.name for each in subjects)}")
    tasks = read_tasks(sts, retrieval)
    report = benchmark(
        subjects, texts, settings, texts_from=texts_from, baseline=baseline, floor=floor, left_out=left_out, meter=meter
    )
    scored = [subject for subject in subjects if subject.name not in unscored]
    for task, scores in _scores(scored, tasks, reporter or SilentReporter()).items():
        report = report.with_quality(task, scores)
    return report


def check_paper_table(name: str | None, sts: Sequence[Path], retrieval: Sequence[Path]) -> None:
    """Raise InputError if a paper's table lacks its file, before anything is read or measured.

    Args:
        name: One of `PAPER_TABLES`; None for no table.
        sts: Files of sentence pairs.
        retrieval: Retrieval sets.

    Raises:
        InputError: If the table needs one file and has none, or several.
    """
    if name == "simtde":
        _check_one(sts, "simtde", "--sts FILE, STS-B's test set in the paper")
    if name == "hpd":
        _check_one(retrieval, "hpd", "--retrieval DIR or FILE, Quora's duplicate questions in the paper")


def measure_paper_table(
    name: str,
    subjects: Sequence[Subject],
    texts: Sequence[str],
    settings: BenchmarkSettings,
    *,
    texts_from: str,
    sts: Sequence[Path] = (),
    retrieval: Sequence[Path] = (),
    batches: int | None = None,
) -> PaperTable:
    """Measure the cost table of one of the papers for other models.

    Args:
        name: One of `PAPER_TABLES`.
        subjects: The rows.
        texts: For "xayn" the texts to encode, for "cmow" those from which words are drawn.
        settings: How much is measured; only "xayn" uses more than threads and seed.
        texts_from: Where the texts come from, for the report.
        sts: For "simtde" one file of sentence pairs, STS-B's test set in the paper.
        retrieval: For "hpd" one retrieval set, Quora's duplicate questions in the paper.
        batches: For "cmow" the number of batches; 1,024 as in the paper if absent.

    Returns:
        The table.

    Raises:
        InputError: If there is no such table, it lacks its file, or a subject or a number is not usable.
        CheckError: If a subject fails.
    """
    check_paper_table(name, sts, retrieval)
    shared = {"threads": settings.threads, "seed": settings.seed}
    if name == "simtde":
        pairs = read_sts(sts[0])
        both = list(zip(pairs.first, pairs.second, strict=True))
        return simtde_table(subjects, both, pairs_from=pairs.name, **shared)
    if name == "hpd":
        return hpd_table(subjects, search_task(read_retrieval(retrieval[0])), **shared)
    if name == "xayn":
        return xayn_table(benchmark(subjects, texts, settings, texts_from=texts_from))
    if name == "cmow":
        return cmow_table(subjects, texts, **shared, **({} if batches is None else {"batches": batches}))
    raise InputError(f"no paper table called {name}; expected one of: {', '.join(PAPER_TABLES)}")


def _scores(subjects: Sequence[Subject], tasks: Sequence[Task], reporter: Reporter) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    if not tasks:
        return scores
    threads = this_machine().available_cores
    for subject in subjects:
        with start_worker(subject, "a text", threads=threads) as worker:
            for score in score_tasks(subject.name, WorkerEncoder(worker), tasks, reporter):
                scores.setdefault(f"{score.task} ({score.metric})", {})[subject.name] = score.value
    return scores


def _check_one(files: Sequence[Path], name: str, expected: str) -> None:
    if len(files) != 1:
        raise InputError(f"{len(files)} files for the paper table {name}; expected one {expected}")
