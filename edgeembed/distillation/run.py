"""A distillation in two parts: what each process prepares, the main one first, and what they do together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from sentence_transformers import SentenceTransformer
from transformers import TrainerCallback

from edgeembed.corpus.parallel import LanguageCounts
from edgeembed.distillation import pipeline
from edgeembed.distillation.comparison import Comparison, compare_with_teacher
from edgeembed.distillation.data import DistillationData, read_data
from edgeembed.distillation.inputs import Inputs
from edgeembed.distillation.report import DistillationReport
from edgeembed.distillation.saving import save_student
from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.processes import process_index
from edgeembed.progress import TimedSteps
from edgeembed.recipe.schema import Recipe
from edgeembed.training.checkpoints import (
    checkpoint_folder,
    default_cache,
    default_logs,
    open_checkpoints,
    resume_hint,
    run_key,
)
from edgeembed.training.data import LabeledData
from edgeembed.training.trainer import StageResult


@dataclass(frozen=True)
class Run:
    """A distillation that is ready to train: all that training and writing need.

    Attributes:
        recipe: The recipe.
        prepared: The student before its first stage, and what it learns.
        labeled: Labeled and scored pairs, and the development set.
        languages: Counts of translations by language.
        names: Names of the sources, stated on the student's model card.
        teacher: The teacher's folder; None for a model that was given in memory, or if there is no such folder here.
        out: Folder for the student.
        cache: Folder for the teacher's embeddings and checkpoints.
        checkpoints: Folder for the checkpoints of this run, in `cache`.
        resume: Whether to continue from checkpoints.
        seed: The seed.
        force: Whether to replace an existing student.
    """

    recipe: Recipe
    prepared: pipeline.Prepared
    labeled: LabeledData
    languages: tuple[LanguageCounts, ...]
    names: tuple[str, ...]
    teacher: Path | None
    out: Path
    cache: Path
    checkpoints: Path
    resume: bool
    seed: int
    force: bool


def prepare_run(inputs: Inputs, steps: TimedSteps) -> Run:
    """Read the text, encode it with the teacher and initialize the student.

    Args:
        inputs: The arguments of `distill`.
        steps: Times the steps.

    Raises:
        InputError: If a file or model cannot be read, or does not suit the recipe.
    """
    recipe, seed = inputs.recipe, inputs.seed
    cache = default_cache(inputs.out) if inputs.cache is None else inputs.cache
    store = None if inputs.teacher_embeddings is None else EmbeddingStore.open(inputs.teacher_embeddings)
    with resume_hint(cache, steps.reporter):
        labeled = LabeledData.read(recipe, inputs.pairs, inputs.scored, inputs.dev)
        models = pipeline.load_models(recipe, inputs.teacher, store)
        if warning := pipeline.prompt_warning(recipe, models):
            steps.reporter.note(warning)
        labeled_files = [*inputs.pairs, *inputs.scored]
        data = read_data(recipe, inputs.corpus, inputs.parallel, labeled, labeled_files, steps.reporter, seed=seed)
        prepared = pipeline.prepare_student(recipe, models, data, cache, steps, store, seed=seed)
    return Run(
        recipe=recipe,
        prepared=prepared,
        labeled=labeled,
        languages=tuple(data.parallel.languages) if data.parallel else (),
        names=data.names,
        teacher=models.folder,
        out=inputs.out,
        cache=cache,
        checkpoints=_checkpoints(inputs, data, prepared, cache),
        resume=inputs.resume,
        seed=seed,
        force=inputs.force,
    )


def _checkpoints(inputs: Inputs, data: DistillationData, prepared: pipeline.Prepared, cache: Path) -> Path:
    """Return the folder for the checkpoints of a run with these inputs."""
    teacher = prepared.cached.encoder.key if prepared.cached else ""
    text, seed = prepared.text, inputs.seed
    key = run_key(inputs.recipe, teacher, prepared.tokenizer, text, prepared.domains, data.labeled, seed)
    return checkpoint_folder(cache, key)


def finish_run(
    run: Run,
    steps: TimedSteps,
    *,
    callbacks: Sequence[TrainerCallback],
    report_to: Sequence[str],
    command: Sequence[str],
) -> DistillationReport:
    """Train the student in all processes; the main one writes its folder.

    Args:
        run: The distillation.
        steps: Times the steps.
        callbacks: Callbacks of the Hugging Face trainer.
        report_to: Integrations of the Hugging Face trainer.
        command: The command line.

    Raises:
        InputError: If another run uses the cache, or a file cannot be read or written.
    """
    with resume_hint(run.cache, steps.reporter), ExitStack() as stack:
        if process_index() == 0:
            stack.enter_context(open_checkpoints(run.checkpoints, resume=run.resume, reporter=steps.reporter))
        PartialState().wait_for_everyone()
        results = pipeline.train_student(
            run.recipe,
            run.prepared,
            run.labeled,
            run.checkpoints,
            steps,
            resume=run.resume,
            seed=run.seed,
            callbacks=callbacks,
            report_to=report_to,
            logs=default_logs(run.out),
        )
        PartialState().wait_for_everyone()  # each process may load the best checkpoint
        written = [_write(run, steps, results, command) if process_index() == 0 else None]
        report: DistillationReport = broadcast_object_list(written)[0]
        return report


def _write(run: Run, steps: TimedSteps, results: Sequence[StageResult], command: Sequence[str]) -> DistillationReport:
    student, whitening = pipeline.whiten_student(run.recipe, run.prepared, steps)
    comparison = compare_with_teacher(run.prepared, student, steps)
    report = _report(run, student, results, whitening, comparison, steps.seconds)
    save_student(student, run.recipe, run.teacher, report, run.names, seed=run.seed, force=run.force, command=command)
    return report


def _report(
    run: Run,
    student: SentenceTransformer,
    results: Sequence[StageResult],
    whitening: dict[str, Any] | None,
    comparison: Comparison,
    seconds: dict[str, float],
) -> DistillationReport:
    prepared = run.prepared
    return DistillationReport(
        path=run.out,
        parameters=sum(weight.numel() for weight in student.parameters()),
        sentences=len(prepared.text.sentences),
        languages=run.languages,
        vocabulary_size=prepared.tokenizer.get_vocab_size(),
        dimension=int(student.get_embedding_dimension()),
        space=comparison.space,
        explained_variance=prepared.projection.explained_variance if prepared.projection else None,
        reused_sentences=prepared.cached.reused_texts if prepared.cached else 0,
        augmentation=prepared.augmentation,
        steps=tuple(result.steps for result in results),
        losses=tuple(result.loss for result in results),
        final_losses=tuple(result.final_loss for result in results),
        dev_spearman=tuple(result.dev_spearman for result in results),
        held_out_agreement=comparison.held_out_agreement,
        whitening=whitening,
        seconds=seconds,
        history=tuple(result.history for result in results),
    )
