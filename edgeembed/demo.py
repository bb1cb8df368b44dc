"""Demo: distill, export, search and benchmark a student on the documentation of Python's standard library."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from datasets import Dataset
from edgeembed_bench import BenchmarkReport
from edgeembed_bench.render import terminal_report
from edgeembed_exporters import ExportReport
from edgeembed_exporters.rank_agreement import rank_agreement
from edgeembed_runtime import Encoder, Hit, Index, InputError
from edgeembed_runtime.errors import CheckError
from edgeembed_runtime.index.folder import INDEX_FOLDER
from edgeembed_runtime.manifest import BUNDLE_FOLDER
from edgeembed_runtime.report import Report
from edgeembed_runtime.storage.atomic import check_output_file, check_output_path
from rich.console import Console, RenderableType

from edgeembed.benchmarking import benchmark
from edgeembed.corpus import CorpusCounts, docstrings
from edgeembed.distillation import DistillationReport, distill
from edgeembed.distillation.data import read_recipe_corpus, split_corpus
from edgeembed.exporting import export
from edgeembed.models import find_torch_model, load_model, load_tokenizer
from edgeembed.progress import Reporter, SilentReporter
from edgeembed.provenance import STUDENT_FOLDER
from edgeembed.recipe.loading import load_recipe
from edgeembed.recipe.schema import Recipe
from edgeembed.vocabulary import Coverage, coverage_table, measure_coverage

QUESTIONS = (
    "how do I read a file line by line",
    "how can I run a function in another thread",
    "sort a list without changing it",
)
COSTS_FILE = "costs.html"

_CORPUS = "pydoc:stdlib"
_QUALITY = "top-10 kept, %"
_HITS = 3
_MAX_SHOWN = 72
_RUNS = 400
_PROCESSES = 2  # enough without a significance test: the difference is large


@dataclass(frozen=True)
class Answer:
    """Search results for a question.

    Attributes:
        question: The question.
        hits: The best documents, each a name of the standard library with the summary of its documentation.
    """

    question: str
    hits: tuple[Hit, ...]

    def __str__(self) -> str:
        """Return the question and a line per hit."""
        lines = [f"{self.question}?"]
        for hit in self.hits:
            shown = hit.text if len(hit.text) <= _MAX_SHOWN else f"{hit.text[: _MAX_SHOWN - 1]}…"
            lines.append(f"  {hit.score:.2f}  {shown}")
        return "\n".join(lines)


@dataclass(frozen=True)
class DemoReport(Report):
    """Result of the demo.

    Attributes:
        path: The folder that holds the student, the bundle, the index and the benchmark page.
        corpus: Number of sentences read, dropped and kept.
        training_sentences: Number of sentences to train on.
        held_out_sentences: Number of other sentences, which coverage and costs are measured on.
        vocabulary: Coverage of the trained vocabulary and of the teacher's.
        student: Report of the distillation.
        bundle: Report of the export.
        answers: Search results of the bundle for three questions.
        costs: Benchmark of teacher and student.
        seconds: Duration of the demo.
    """

    path: Path
    corpus: CorpusCounts
    training_sentences: int
    held_out_sentences: int
    vocabulary: dict[str, Coverage]
    student: DistillationReport
    bundle: ExportReport
    answers: tuple[Answer, ...]
    costs: BenchmarkReport
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data that JSON can hold."""
        return {**super().to_dict(), "costs": self.costs.to_dict()}

    def __str__(self) -> str:
        """Return the results of all steps, and the command that asks the index a question."""
        parity = self.bundle.parity
        return "\n".join(
            [
                (
                    f"corpus: {self.training_sentences:,} sentences of Python's documentation to train on, "
                    f"{self.held_out_sentences:,} held out"
                ),
                coverage_table(self.vocabulary).to_text().rstrip(),
                (
                    f"bundle: {self.bundle.size_bytes / 1e6:.1f} MB, cosine to the student at least "
                    f"{parity.min_cosine:.4f}, on average {parity.mean_cosine:.4f}"
                ),
                *(f"\n{answer}" for answer in self.answers),
                f"\n{_as_text(terminal_report(self.costs))}",
                f"\nAll of it is in {self.path}/ and took {self.seconds:.0f} s. Ask it yourself:",
                f'  edgeembed-runtime search {self.path}/index "how do I parse a date" --bundle {self.path}/bundle',
            ]
        )


def run_demo(
    out: str | os.PathLike[str] = "demo",
    *,
    recipe: str | os.PathLike[str] | Recipe = "demo",
    overrides: Mapping[str, Any] | Sequence[str] = (),
    seed: int = 0,
    reporter: Reporter | None = None,
) -> DemoReport:
    """Distill, export, search and benchmark a student on the documentation of Python's standard library.

    Args:
        out: Folder for the student, the bundle, the index, the benchmark page and the cache. Results of an earlier
            demo are replaced.
        recipe: A recipe by name, a TOML file, or a loaded recipe.
        overrides: Settings of the recipe to change.
        seed: Seed of all random samples and weights.
        reporter: Receives progress; None for silence.

    Returns:
        The report; its field `path` is the folder.

    Raises:
        InputError: If an argument is wrong, or the folder holds results that no demo wrote; before any work.
        MissingExtraError: If the recipe's teacher is the default one, and its package is not installed; likewise.
    """
    start = time.perf_counter()
    out, reporter = Path(out), reporter or SilentReporter()
    settings = load_recipe(recipe, overrides)
    find_torch_model(settings.teacher)
    _check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    with reporter.step("corpus"):
        corpus = read_recipe_corpus(settings, _CORPUS, seed)
        training, held_out = split_corpus(settings, corpus.sentences, seed)
        texts = Dataset.from_dict({"text": held_out})
    student = distill(settings, _CORPUS, out / "student", cache=out / "cache", seed=seed, force=True, reporter=reporter)
    exported = export(student.path, out / "bundle", precision="int8", sentences=texts, force=True, reporter=reporter)
    bundle = cast("ExportReport", exported)  # the other report is that of a classifier
    vocabularies = {"trained": os.fspath(student.path), settings.teacher: settings.teacher}
    answers = _search(bundle.path, out / "index", QUESTIONS, reporter)
    costs = _measure_costs(settings.teacher, bundle.path, held_out, texts, reporter)
    costs.to_html(out / COSTS_FILE)
    return DemoReport(
        path=out,
        corpus=corpus.counts,
        training_sentences=len(training),
        held_out_sentences=len(held_out),
        vocabulary={name: measure_coverage(load_tokenizer(model), held_out) for name, model in vocabularies.items()},
        student=student,
        bundle=bundle,
        answers=answers,
        costs=costs,
        seconds=round(time.perf_counter() - start, 1),
    )


def _as_text(renderable: RenderableType) -> str:
    console = Console(file=io.StringIO())
    with console.capture() as captured:
        console.print(renderable)
    return captured.get().rstrip()


def _check_folder(out: Path) -> None:
    """Raise InputError if something in the folder was not written by an earlier demo."""
    for name, kind in (("student", STUDENT_FOLDER), ("bundle", BUNDLE_FOLDER), ("index", INDEX_FOLDER)):
        check_output_path(out / name, force=True, kind=kind)
    check_output_file(out / COSTS_FILE)
    if (out / COSTS_FILE).exists() and not (out / "student").exists():
        raise InputError(f"{out / COSTS_FILE} exists and no demo wrote it; choose another --out")


def _search(bundle: Path, index_folder: Path, questions: Sequence[str], reporter: Reporter) -> tuple[Answer, ...]:
    """Index the documentation, save the index, and search it."""
    with reporter.step("index"):
        documents = [
            f"{found.name}: {found.summary}" for found in docstrings(standard_library_only=True) if found.summary
        ]
        index = Index.build(Encoder.load(bundle, threads=None), documents)
        index.save(index_folder, force=True)
    return tuple(Answer(question, tuple(index.search(question, _HITS))) for question in questions)


def _measure_costs(
    teacher: str, bundle: Path, held_out: Sequence[str], texts: Dataset, reporter: Reporter
) -> BenchmarkReport:
    """Benchmark teacher and student, with the share of the teacher's nearest sentences that the student keeps."""
    with reporter.step("ranking agreement"):
        reference = load_model(teacher).encode(held_out, show_progress_bar=False)
        kept = rank_agreement(reference, Encoder.load(bundle, threads=None).encode(held_out)).top_10_overlap
    with reporter.step("benchmark"):
        report = benchmark(
            [_named("student", bundle)],
            against=[_named("teacher", teacher)],
            texts=texts,
            runs=_RUNS,
            processes=_PROCESSES,
            sweep=False,
        )
    if kept is None:
        raise CheckError("the held-out sentences cannot be ranked: they are too few, or their embeddings not finite")
    scores = {subject.name: 100.0 if subject.name == report.baseline else 100 * kept for subject in report.subjects}
    return report.with_quality(_QUALITY, scores)


def _named(name: str, model: str | Path) -> str:
    """Return a model's specification for the benchmark; it has no name if the path contains `@`, the separator."""
    return str(model) if "@" in str(model) else f"{name}={model}"
