"""From text and a teacher to a student: the steps of `edgeembed distill`."""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from edgeembed_exporters import add_head
from edgeembed_exporters.card import command_line, read_front_matter, without_paths
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_folder, check_output_path
from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from edgeembed.augmentation import AugmentationReport, augment
from edgeembed.corpus import Corpus, gather_corpus, held_out_count, split_holdout
from edgeembed.corpus.parallel import LanguageCounts, ParallelText, read_parallel
from edgeembed.hardware import default_device
from edgeembed.launching import refuse_several_processes
from edgeembed.masked_teacher import load_masked_teacher
from edgeembed.models import STUDENT_FOLDER, load_model, model_folder
from edgeembed.objectives import Wanted, stage_loss
from edgeembed.progress import Advance, Reporter, SilentReporter
from edgeembed.projection import Projection, fit_pca
from edgeembed.recipe import Recipe
from edgeembed.stage_data import LabelledData, LearningText, learning_text, run_key, stage_dataset
from edgeembed.student_card import student_card
from edgeembed.students.assembling import assemble_student, check_student, student_vocabulary, token_targets
from edgeembed.teacher import TeacherCache, teacher_fingerprint, teacher_vectors, with_length
from edgeembed.training import StageResult, StepCallback, last_whole_checkpoint, seed_everything, train_stage


@dataclass(frozen=True)
class DistilReport:
    """What a distillation did.

    Attributes:
        student: The student's folder.
        parameters: Weights of the student, token table included.
        sentences: Distinct sentences it was distilled from; of those with translations the sentences alone.
        languages: What became of each language's translations.
        vocabulary_size: Tokens it knows.
        dimension: Dimensions of its vectors.
        explained_variance: Share of the teacher's variance in the head's dimensions; `None` without a PCA head.
        reused_sentences: Sentences whose teacher vectors were found in the cache.
        augmentation: What was made of the sentences before; `None` where the recipe asks for nothing.
        losses: Mean loss of each stage.
        final_losses: Mean loss of each stage over its last steps, a tenth of all or 50 if that is fewer.
        dev_spearman: Spearman's correlation x100 on the development set after each stage; `None` without one.
        whitening: What whitening kept, as `HeadReport` tells it; `None` without.
        seconds: Wall-clock time of each step.
    """

    student: str
    parameters: int
    sentences: int
    languages: tuple[LanguageCounts, ...]
    vocabulary_size: int
    dimension: int
    explained_variance: float | None
    reused_sentences: int
    augmentation: AugmentationReport | None
    losses: tuple[float, ...]
    final_losses: tuple[float, ...]
    dev_spearman: tuple[float | None, ...]
    whitening: dict[str, Any] | None
    seconds: dict[str, float]


def recipe_corpus(recipe: Recipe, sources: Sequence[str | Path], seed: int = 0) -> Corpus:
    """Read the sentences that a recipe asks for; sources and errors are those of `read_corpus`."""
    settings = recipe.corpus
    return gather_corpus(
        sources,
        limit=settings.limit or None,
        limit_per_source=settings.limit_per_source or None,
        min_characters=settings.min_characters,
        max_characters=settings.max_characters,
        seed=seed,
    )


def split_corpus(recipe: Recipe, sentences: Sequence[str], seed: int = 0) -> tuple[list[str], list[str]]:
    """Return the sentences to train on, and those that a recipe holds out: a tenth of them, `corpus.heldout` at most.

    Args:
        recipe: Says how many to hold out at the most.
        sentences: Distinct sentences.
        seed: Decides the sample.
    """
    return split_holdout(sentences, held_out_count(len(sentences), recipe.corpus.heldout), seed)


def recipe_parallel(recipe: Recipe, sources: Sequence[str | Path], seed: int = 0) -> ParallelText | None:
    """Read the translations that a recipe asks for; None without sources; errors are those of `read_parallel`."""
    if not sources:
        return None
    return read_parallel(
        sources,
        limit=recipe.parallel.limit,
        smoothing=recipe.parallel.smoothing,
        min_characters=recipe.corpus.min_characters,
        max_characters=recipe.corpus.max_characters,
        seed=seed,
    )


def distil(  # noqa: PLR0913  # what the command offers
    recipe: Recipe,
    sentences: Sequence[str],
    out: Path,
    *,
    parallel: ParallelText | None = None,
    pairs: Sequence[str | Path] = (),
    scored: Sequence[str | Path] = (),
    dev: Path | None = None,
    domains: Mapping[str, int] | None = None,
    sources: Sequence[str | Path] = (),
    cache: Path | None = None,
    resume: bool = False,
    seed: int = 0,
    force: bool = False,
    reporter: Reporter | None = None,
    command: Sequence[str] = (),
) -> DistilReport:
    """Distil a student from a teacher over unlabelled sentences, their translations, and what people labelled.

    Args:
        recipe: What the student is to be.
        sentences: Distinct sentences, without those that are held out; none where all there is has labels or
            translations.
        out: Folder for the student, which loads as a sentence-transformer.
        parallel: Sentences and translations, both of which are drawn to the teacher's vector of the sentence.
        pairs: Files of labelled pairs for stages that read them, as `read_pairs` takes them.
        scored: Files of scored sentence pairs for stages that read them, as `read_sts` takes them.
        dev: Scored sentence pairs, as `read_sts` takes them; of each stage the checkpoint that does best on them is
            kept.
        domains: The domain of each sentence, for the objective meta; `None` where all are of one.
        sources: Where the sentences come from; their names go into the student's card.
        cache: Folder for the teacher's vectors and the checkpoints; beside `out` where not given. It may be shared.
        resume: Whether to go on from the checkpoints of an interrupted run of the same recipe, text and seed.
        seed: Decides every draw; the same seed gives the same weights on the same machine and libraries.
        force: Whether an existing `out` is replaced.
        reporter: Hears of the steps, and whether there is anything to resume.
        command: The words that the user typed, which the student's card repeats without paths of the machine.

    Returns:
        What was done, and how long each step took.

    Raises:
        InputError: If `out` exists, the recipe asks for more than it is given or the teacher has, there is too little
            text, or several processes were started.
    """
    refuse_several_processes()
    check_output_path(out, force=force, kind=STUDENT_FOLDER)
    recipe.check_given(corpus=sentences, parallel=parallel.files if parallel else (), pairs=pairs, scored=scored)
    labelled = LabelledData.read(recipe, pairs, scored, dev)
    if not sentences and parallel is None:
        sentences = labelled.texts()
    clock = _Clock(reporter or SilentReporter())
    cache = cache or default_cache(out)
    prepared = _prepare(recipe, sentences, parallel, domains or {}, cache, clock, seed=seed)
    key = run_key(recipe, prepared.tokenizer, prepared.text, prepared.domains, labelled, seed)
    checkpoints = cache / "checkpoints" / key
    if not resume:
        shutil.rmtree(checkpoints, ignore_errors=True)
    elif not any(last_whole_checkpoint(stage) for stage in checkpoints.glob("*")):
        clock.reporter.note(
            f"--resume: {cache} holds no checkpoint of this run (the same recipe, text and seed); training starts from "
            "the beginning"
        )
    results = _train(recipe, prepared, labelled, checkpoints, clock, resume=resume, seed=seed)
    student, whitening = _whitened(recipe, prepared, clock)
    languages = parallel.languages if parallel else ()
    report = _report(out, student, prepared, languages, results, whitening, clock)
    text = [str(name) for name in (*sources, *(parallel.files if parallel else ()), *pairs, *scored)]
    save_student(student, out, recipe, report, text, seed=seed, force=force, command=command)
    shutil.rmtree(checkpoints, ignore_errors=True)
    return report


def default_cache(out: Path) -> Path:
    """Return the folder beside a student in which its teacher vectors and checkpoints are kept."""
    return out.with_name(f"{out.name}.cache")


def kept_work(cache: Path) -> list[str]:
    """Return what a cache folder keeps of runs that did not end, in words: teacher vectors, checkpoints, or nothing."""
    chunks = any(file.stat().st_size for file in (cache / "teacher").glob("*/chunks.jsonl"))
    checkpoints = any((cache / "checkpoints").glob("*/*/checkpoint-*/trainer_state.json"))
    return [name for name, exists in (("teacher vectors", chunks), ("checkpoints", checkpoints)) if exists]


def save_student(  # what a student's folder tells of it
    student: SentenceTransformer,
    out: Path,
    recipe: Recipe,
    report: DistilReport,
    text: Sequence[str],
    *,
    seed: int,
    force: bool,
    command: Sequence[str] = (),
) -> None:
    """Write a student's folder: weights, the resolved recipe, and a model card, without paths of this machine.

    Raises:
        InputError: If `out` exists and `force` is not set, or cannot be written.
    """
    with atomic_folder(out, force=force, kind=STUDENT_FOLDER) as folder:
        try:
            student.cpu().save(str(folder), create_model_card=False)
        except SafetensorError as error:  # it reports a full disk in its own way
            raise InputError(f"cannot write {out}: {error}; make room there or choose another place") from error
        provenance: dict[str, Any] = {
            "teacher": recipe.teacher,
            "licenses": list(recipe.corpus.licenses),
            "command": command_line(command) or None,
            "training_text": ["standard input" if name == "-" else Path(name).name for name in text],
            "seed": seed,
            "recipe": recipe.to_dict(),
            "report": {**asdict(report), "student": out.name},
        }
        provenance = without_paths(provenance)
        teacher_card = read_front_matter(model_folder(recipe.teacher) / "README.md")
        (folder / "README.md").write_text(student_card(out.name, provenance, teacher_card), encoding="utf-8")
        STUDENT_FOLDER.write_manifest(folder, provenance)  # last: it lists all that is in the folder


class _Clock:
    """Times the steps and passes them on to the reporter."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str, total: int | None = None) -> Iterator[Advance]:
        start = time.perf_counter()
        with self.reporter.step(name, total) as advance:
            yield advance
        self.seconds[name] = round(time.perf_counter() - start, 3)


@dataclass(frozen=True)
class _Prepared:
    """A student before its first stage, and all that it is to learn from a teacher."""

    student: SentenceTransformer
    tokenizer: Tokenizer
    text: LearningText
    domains: npt.NDArray[np.int64]
    augmentation: AugmentationReport | None
    cached: TeacherCache | None
    projection: Projection | None
    wanted: Wanted | None


def _prepare(
    recipe: Recipe,
    sentences: Sequence[str],
    parallel: ParallelText | None,
    domains: Mapping[str, int],
    cache: Path,
    clock: _Clock,
    *,
    seed: int,
) -> _Prepared:
    teacher = with_length(load_model(recipe.teacher, device=default_device()), unit=recipe.head.normalize)
    source = load_model(recipe.student.source, device=default_device()) if recipe.student.source else teacher
    check_student(recipe, teacher, source)
    augmented = augment(sentences, recipe.augmentation, cache / "augmentation", seed=seed, reporter=clock.reporter)
    text = learning_text(augmented.sentences, parallel)
    seed_everything(seed)  # here, since loading models may draw too
    with clock.step("vocabulary"):
        tokenizer = student_vocabulary(recipe, source, text.texts)
    cached = _teacher_cache(recipe, teacher, text.sentences, cache, clock)
    with clock.step("initialise"):
        projection = _projection(recipe, cached)
        targets = token_targets(recipe, source, tokenizer)
        student = assemble_student(recipe, source, tokenizer, targets, projection, text.texts)
    # What augmentation made is a domain of its own, and so is what was translated.
    made_of = np.array([domains.get(sentence, -1) for sentence in text.sentences], dtype=np.int64)
    wanted = Wanted(cached.vectors, projection, targets, teacher[0].auto_model, made_of) if cached else None
    made = augmented.report if recipe.augmentation.is_wanted else None
    return _Prepared(student, tokenizer, text, made_of, made, cached, projection, wanted)


def _report(
    out: Path,
    student: SentenceTransformer,
    prepared: _Prepared,
    languages: tuple[LanguageCounts, ...],
    results: Sequence[StageResult],
    whitening: dict[str, Any] | None,
    clock: _Clock,
) -> DistilReport:
    return DistilReport(
        student=str(out),
        parameters=sum(weight.numel() for weight in student.parameters()),
        sentences=len(prepared.text.sentences),
        languages=languages,
        vocabulary_size=prepared.tokenizer.get_vocab_size(),
        dimension=int(student.get_embedding_dimension()),
        explained_variance=prepared.projection.explained_variance if prepared.projection else None,
        reused_sentences=prepared.cached.reused_sentences if prepared.cached else 0,
        augmentation=prepared.augmentation,
        losses=tuple(result.loss for result in results),
        final_losses=tuple(result.final_loss for result in results),
        dev_spearman=tuple(result.dev_spearman for result in results),
        whitening=whitening,
        seconds=clock.seconds,
    )


def _teacher_cache(
    recipe: Recipe, teacher: SentenceTransformer, sentences: Sequence[str], cache: Path, clock: _Clock
) -> TeacherCache | None:
    if not recipe.needs_teacher:
        return None
    fingerprint = teacher_fingerprint(model_folder(recipe.teacher), unit=recipe.head.normalize)
    with clock.step("teacher", len(sentences)) as advance:
        return teacher_vectors(teacher, fingerprint, sentences, cache / "teacher", progress=advance)


def _projection(recipe: Recipe, cached: TeacherCache | None) -> Projection | None:
    head = recipe.head
    if cached is None or head.kind == "none" or (head.kind == "linear" and head.dim == cached.vectors.shape[1]):
        return None
    return fit_pca(cached.vectors, head.dim)


def _train(  # one call a stage
    recipe: Recipe,
    prepared: _Prepared,
    labelled: LabelledData,
    checkpoints: Path,
    clock: _Clock,
    *,
    resume: bool,
    seed: int,
) -> list[StageResult]:
    student, results = prepared.student, []
    masked_teacher = load_masked_teacher(recipe.teacher) if any(stage.masked for stage in recipe.stages) else None
    for number, stage in enumerate(recipe.stages):
        dataset = stage_dataset(stage, prepared.text, labelled)
        steps = int(stage.epochs * -(-len(dataset) // stage.batch_size))
        with clock.step(f"stage {number + 1}", steps) as advance:
            results.append(
                train_stage(
                    student,
                    dataset,
                    stage_loss(student, stage, prepared.wanted if stage.reads_vectors else None, masked_teacher),
                    stage,
                    checkpoints=checkpoints / str(number),
                    resume=resume,
                    seed=seed,
                    device=default_device(),
                    dev=labelled.dev,
                    callbacks=[StepCallback(advance)],
                )
            )
    student[0].gives_hidden_states = False
    return results


def _whitened(recipe: Recipe, prepared: _Prepared, clock: _Clock) -> tuple[SentenceTransformer, dict[str, Any] | None]:
    if not recipe.head.whiten_dim:
        return prepared.student, None
    with clock.step("whiten"):
        whitened, report = add_head(prepared.student, prepared.text.texts, dim=recipe.head.whiten_dim, whiten=True)
    return whitened, asdict(report)
