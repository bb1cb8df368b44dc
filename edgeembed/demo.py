"""The whole job on text that every machine has: the documentation of Python itself."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeembed_bench import BenchmarkReport, BenchmarkSettings, Subject, benchmark
from edgeembed_exporters import ExportReport, export
from edgeembed_runtime import Encoder, Hit, Index, InputError, TruncationWarning
from edgeembed_runtime.index.folder import INDEX_FOLDER
from edgeembed_runtime.manifest import BUNDLE_FOLDER
from edgeembed_runtime.storage.atomic import check_output_file, check_output_path

from edgeembed.corpus import Corpus, docstrings
from edgeembed.distillation import DistilReport, distil, recipe_corpus, split_corpus
from edgeembed.evaluation.agreement import ranking_agreement
from edgeembed.models import STUDENT_FOLDER, bundle_provenance, load_model, load_tokenizer, model_folder
from edgeembed.progress import Reporter
from edgeembed.recipe import Recipe
from edgeembed.vocabulary import Coverage, measure_coverage

QUESTIONS = (
    "how do I read a file line by line",
    "how can I run a function in another thread",
    "sort a list without changing it",
)


COSTS_FILE = "costs.html"
_KEPT = "top-10 kept, %"


@dataclass(frozen=True)
class DemoText:
    """The demo's corpus.

    Attributes:
        corpus: Sentences and how they were gathered.
        training: Sentences to distil from.
        heldout: Sentences that neither vocabulary nor student has seen.
    """

    corpus: Corpus
    training: list[str]
    heldout: list[str]


@dataclass(frozen=True)
class Answer:
    """What the search found.

    Attributes:
        question: What was asked.
        hits: The best documents, each a name of Python's library and what it says of itself.
    """

    question: str
    hits: list[Hit]


def check_folder(out: Path) -> None:
    """Check before any work that the demo may replace what is in its folder.

    Args:
        out: The demo's folder.

    Raises:
        InputError: If something there was not written by an earlier demo.
    """
    for name, kind in (("student", STUDENT_FOLDER), ("bundle", BUNDLE_FOLDER), ("index", INDEX_FOLDER)):
        check_output_path(out / name, force=True, kind=kind)
    check_output_file(out / COSTS_FILE)
    if (out / COSTS_FILE).exists() and not (out / "student").exists():
        raise InputError(f"{out / COSTS_FILE} exists already and no demo wrote it; choose another --out")


def gather_text(recipe: Recipe, reporter: Reporter, seed: int = 0) -> DemoText:
    """Return the sentences of the standard library's docstrings, split into training and held-out ones."""
    with reporter.step("corpus"):
        corpus = recipe_corpus(recipe, ["pydoc:stdlib"], seed)
    training, heldout = split_corpus(recipe, corpus.sentences, seed)
    return DemoText(corpus, training, heldout)


def make_student(recipe: Recipe, text: DemoText, folder: Path, reporter: Reporter, *, seed: int = 0) -> DistilReport:
    """Distil the demo's student into `folder/student`."""
    return distil(
        recipe,
        text.training,
        folder / "student",
        cache=folder / "cache",
        seed=seed,
        force=True,
        reporter=reporter,
    )


def compare_vocabularies(recipe: Recipe, text: DemoText, student: Path) -> dict[str, Coverage]:
    """Measure on held-out sentences what the student's vocabulary covers, and the teacher's."""
    names = {"tailored": str(student), recipe.teacher: recipe.teacher}
    return {label: measure_coverage(load_tokenizer(name), text.heldout) for label, name in names.items()}


def make_bundle(text: DemoText, student: Path, bundle: Path, reporter: Reporter) -> ExportReport:
    """Export the student to int8 ONNX through the parity gate."""
    with reporter.step("export"):
        return export(
            load_model(str(student)),
            bundle,
            precision="int8",
            sentences=text.heldout,
            provenance=bundle_provenance(str(student)),
            force=True,
        )


def search_documentation(
    bundle: Path, index_folder: Path, questions: Sequence[str], reporter: Reporter, k: int = 3
) -> list[Answer]:
    """Index the standard library's documentation with a bundle, keep the index, and put questions to it."""
    with reporter.step("index"):
        documents = [
            f"{found.name}: {found.summary}" for found in docstrings(standard_library_only=True) if found.summary
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)  # one summary in thousands is that long
            index = Index.build(Encoder.load(bundle, threads=None), documents)
        index.save(index_folder, force=True)
    return [Answer(question, index.search(question, k)) for question in questions]


def measure_costs(
    recipe: Recipe, text: DemoText, bundle: Path, reporter: Reporter, *, runs: int = 400
) -> BenchmarkReport:
    """Measure teacher and student side by side, and how much of the teacher's ranking of held-out text each keeps."""
    with reporter.step("ranking kept"):
        wanted = load_model(recipe.teacher).encode(text.heldout, show_progress_bar=False)
        kept = ranking_agreement(wanted, Encoder.load(bundle, threads=None).encode(text.heldout))
    with reporter.step("costs"):
        subjects = [
            Subject("teacher", "sentence-transformer", str(model_folder(recipe.teacher))),
            Subject("student", "bundle", str(bundle)),
        ]
        # Two processes per subject start quickly; the difference is too large to need a significance test.
        settings = BenchmarkSettings(runs=runs, processes=2, sweep_runs=0)
        report = benchmark(subjects, text.heldout, settings, texts_from="Python's docstrings, held out")
    return report.with_quality(_KEPT, {"teacher": 100.0, "student": kept.kept_percent})
