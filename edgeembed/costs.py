"""What models cost and what they are worth, side by side: the bench's measurements with scores beside them."""

from collections.abc import Collection, Sequence
from pathlib import Path

from edgeembed_bench import (
    BenchReport,
    EnergyMeter,
    Plan,
    Subject,
    WorkerEncoder,
    bench,
    parse_subjects,
    started,
    this_machine,
)
from edgeembed_bench.paper_tables import PaperTable, cmow_table, hpd_table, simtde_table, xayn_table
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation import Task, read_retrieval, read_sts, read_tasks, score_tasks, search_task
from edgeembed.models import built_in_bundle, find_model
from edgeembed.progress import Reporter, SilentReporter

FORMS = ("simtde", "hpd", "xayn", "cmow")


def find_subjects(models: Sequence[str]) -> list[Subject]:
    """Return the subjects of a benchmark by the names that a user gives.

    Args:
        models: Each `[NAME=][KIND:]WHAT[@PYTHON]`, as `edgeembed_bench.parse_subjects` takes them. WHAT may be any name
            that `edgeembed.models.find_model` takes, or the folder of a peer's model.

    Raises:
        InputError: If there is no such model.
    """
    return parse_subjects(models, _folder)


def _folder(name: str) -> Path:
    # Folders of peers (model2vec, plain ONNX) hold none of the files that find_model expects.
    return built_in_bundle(name) or (Path(name) if Path(name).is_dir() else find_model(name))


def measure_costs(  # noqa: PLR0913  # the bench's and the evaluation's together
    subjects: Sequence[Subject],
    texts: Sequence[str],
    plan: Plan | None = None,
    *,
    texts_from: str,
    baseline: str | None = None,
    sts: Sequence[Path] = (),
    retrieval: Sequence[Path] = (),
    unscored: Collection[str] = (),
    meter: EnergyMeter | None = None,
    reporter: Reporter | None = None,
) -> BenchReport:
    """Measure what encoders cost, with scores beside that.

    Args:
        subjects: The encoders.
        texts: What they encode.
        plan: How much is measured.
        texts_from: Where the texts come from.
        baseline: Name of the subject that the others are compared with; the first if absent.
        sts: Files of scored sentence pairs and folders of them, as `read_tasks` takes them.
        retrieval: Retrieval sets, as `read_retrieval` takes them.
        unscored: Names of subjects whose cost alone is asked for, such as a model of random weights.
        meter: Energy meter; this machine's if absent.
        reporter: Hears of each task that is scored.

    Raises:
        InputError: If a file, a subject or a number cannot be used; files are read before anything is measured.
        CheckError: If a subject fails.
    """
    strange = set(unscored) - {subject.name for subject in subjects}
    if strange:
        raise InputError(f"{min(strange)} is not among the subjects: {', '.join(each.name for each in subjects)}")
    tasks = read_tasks(sts, retrieval)
    report = bench(subjects, texts, plan, texts_from=texts_from, baseline=baseline, meter=meter)
    scored = [subject for subject in subjects if subject.name not in unscored]
    for task, scores in _scores(scored, tasks, reporter or SilentReporter()).items():
        report = report.with_quality(task, scores)
    return report


def check_form(form: str | None, sts: Sequence[Path], retrieval: Sequence[Path]) -> None:
    """Refuse a form that lacks its file, before anything is read or measured.

    Args:
        form: One of `FORMS`; None for no form.
        sts: Files of sentence pairs.
        retrieval: Retrieval sets.

    Raises:
        InputError: If the form needs one file and has none, or several.
    """
    if form == "simtde":
        _the_only(sts, "simtde", "--sts FILE, STS-B's test set in the paper")
    if form == "hpd":
        _the_only(retrieval, "hpd", "--retrieval DIR or FILE, Quora's duplicate questions in the paper")


def fill_form(
    form: str,
    subjects: Sequence[Subject],
    texts: Sequence[str],
    plan: Plan,
    *,
    texts_from: str,
    sts: Sequence[Path] = (),
    retrieval: Sequence[Path] = (),
    batches: int | None = None,
) -> PaperTable:
    """Fill in the cost table of one of the papers.

    Args:
        form: One of `FORMS`.
        subjects: The rows.
        texts: For "xayn" what is encoded, for "cmow" where words are drawn from.
        plan: How much is measured; "simtde", "hpd" and "cmow" take threads and seed alone from it.
        texts_from: Where the texts come from.
        sts: For "simtde" one file of sentence pairs, STS-B's test set in the paper.
        retrieval: For "hpd" one retrieval set, Quora's duplicate questions in the paper.
        batches: For "cmow" how many batches; the paper's 1,024 if absent.

    Raises:
        InputError: If there is no such form, or it lacks its file, or a subject or number cannot be used.
        CheckError: If a subject fails.
    """
    check_form(form, sts, retrieval)
    shared = {"threads": plan.threads, "seed": plan.seed}
    if form == "simtde":
        pairs = read_sts(sts[0])
        both = list(zip(pairs.first, pairs.second, strict=True))
        return simtde_table(subjects, both, pairs_from=pairs.name, **shared)
    if form == "hpd":
        return hpd_table(subjects, search_task(read_retrieval(retrieval[0])), **shared)
    if form == "xayn":
        return xayn_table(bench(subjects, texts, plan, texts_from=texts_from))
    if form == "cmow":
        return cmow_table(subjects, texts, **shared, **({} if batches is None else {"batches": batches}))
    raise InputError(f"no form called {form}; expected one of: {', '.join(FORMS)}")


def _scores(subjects: Sequence[Subject], tasks: Sequence[Task], reporter: Reporter) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    if not tasks:
        return scores
    threads = this_machine().cores_allowed
    for subject in subjects:
        with started(subject, "a text", threads=threads) as worker:
            for score in score_tasks(subject.name, WorkerEncoder(worker), tasks, reporter):
                scores.setdefault(f"{score.task} ({score.metric})", {})[subject.name] = score.value
    return scores


def _the_only(files: Sequence[Path], form: str, expected: str) -> None:
    if len(files) != 1:
        raise InputError(f"{len(files)} files for the form {form}; expected one {expected}")
