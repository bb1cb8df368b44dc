"""The steps of a distillation: load models, prepare the student, train it stage by stage, whiten it."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_exporters import add_pca_head
from edgeembed_exporters.reduction.pca_head import Projection, fit_pca
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from transformers import TrainerCallback

from edgeembed.augmentation import AugmentationSummary, augment_sentences, augmentation_methods
from edgeembed.distillation.checks import check_text, needs_components
from edgeembed.distillation.data import DistillationData
from edgeembed.distillation.student import build_student, build_vocabulary, check_student, target_token_embeddings
from edgeembed.embeddings.fingerprint import model_fingerprint
from edgeembed.embeddings.prompts import Prompts
from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.embeddings.teachers import WeightedVectors, combine_similarities
from edgeembed.embeddings.text_encoder import TextEncoder, load_text_encoder, torch_encoder, with_normalization
from edgeembed.embeddings.text_vectors import TextVectors, map_vectors
from edgeembed.hardware import default_device
from edgeembed.losses.base import TeacherTargets
from edgeembed.losses.factory import build_loss
from edgeembed.models import ModelLike, find_local_model, find_torch_model, load_model
from edgeembed.progress import Advance, TimedSteps
from edgeembed.recipe.schema import Recipe
from edgeembed.students.transformer import CompactTransformer
from edgeembed.training.callbacks import StepCallback
from edgeembed.training.data import LabeledData, TrainingText, build_training_text, stage_dataset
from edgeembed.training.trainer import StageResult, seed_everything, stage_steps, train_stage


@dataclass(frozen=True)
class Models:
    """The models that a student learns from.

    Attributes:
        teacher: The teacher, normalizing its embeddings or not as the recipe has it. None if it is not loaded, because
            its embeddings are in a store and the recipe needs no more of it.
        source: The model that the student is initialized from; usually the teacher.
        folder: The teacher's folder; None for a model that was given in memory, or if there is no such folder here.
        others: The further teachers of the recipe.
        dimension: Dimension of the embeddings to learn: the teacher's, or those of all teachers side by side.
        prompts: The teacher's prompts; None if it is not here.
    """

    teacher: SentenceTransformer | None
    source: SentenceTransformer
    folder: Path | None
    others: tuple[TextEncoder, ...]
    dimension: int
    prompts: Prompts | None


@dataclass(frozen=True)
class Prepared:
    """A student before its first stage, and what it is going to learn.

    Attributes:
        student: The student.
        tokenizer: Its vocabulary.
        text: The text that it reads.
        domains: Domain of each sentence, int64 (sentences,).
        augmentation: Counts of augmented sentences; None without augmentation.
        cached: The teacher's embeddings; None if the recipe does not use any.
        held_out: Sentences that the student does not learn from.
        held_out_embeddings: The teacher's embeddings of these, float16 (sentences, dimension); None as above.
        projection: Projection of these to the student's dimension; None if there is none.
        token_targets: Target embedding of each of the student's tokens, as in `TeacherTargets`.
        teacher: The teacher; None if it is not loaded.
        space: Name of the teacher's embedding space, if the recipe teaches it.
    """

    student: SentenceTransformer
    tokenizer: Tokenizer
    text: TrainingText
    domains: npt.NDArray[np.int64]
    augmentation: AugmentationSummary | None
    cached: TextVectors | None
    held_out: list[str]
    held_out_embeddings: npt.NDArray[np.float16] | None
    projection: Projection | None
    token_targets: torch.Tensor
    teacher: SentenceTransformer | None
    space: str | None

    @property
    def targets(self) -> TeacherTargets | None:
        """What the student learns from its teacher; None if the recipe does not use its embeddings."""
        if self.cached is None:
            return None
        return TeacherTargets(self.cached.vectors, self.projection, self.token_targets, self.teacher, self.domains)


def load_models(recipe: Recipe, teacher: ModelLike, store: EmbeddingStore | None = None) -> Models:
    """Load teacher and source, and check that they suit the recipe.

    Args:
        recipe: The recipe.
        teacher: The teacher; a copy is made of a model in memory, which stays as it is.
        store: The teacher's embeddings, if they were computed before. With them, the teacher's weights are loaded only
            if the recipe needs them.

    Raises:
        InputError: If a model cannot be loaded, or the recipe asks for more than it has.
    """
    device = default_device()
    is_named = isinstance(teacher, str | os.PathLike)
    others = tuple(
        load_text_encoder(each.name, normalize=True, prompt=each.prompt, threads=None) for each in recipe.teachers
    )
    added = sum(each.identity.dimension for each in others)
    if store is not None and is_named and not recipe.needs_teacher_weights:
        source = load_model(recipe.student.source, device=device)
        dimension = store.encoder.dimension + added
        check_student(recipe, dimension, source)
        folder = find_local_model(recipe.teacher)
        prompts = None if folder is None else Prompts.of(folder)
        return Models(None, source, folder, others, dimension, prompts)
    if is_named:
        folder = find_torch_model(recipe.teacher)
        loaded = load_model(recipe.teacher, device=device)
    else:
        folder, loaded = None, copy.deepcopy(load_model(teacher)).float().to(device).eval()
    prepared = with_normalization(loaded, normalize=recipe.head.normalize)
    source = load_model(recipe.student.source, device=device) if recipe.student.source else prepared
    dimension = int(prepared.get_embedding_dimension()) + added
    check_student(recipe, dimension, source, prepared)
    prompts = Prompts.of(prepared)
    if recipe.compares_layers and (prompt := prompts.document(recipe.teacher_prompt)):
        raise InputError(
            f"the teacher reads {prompt!r} before each text, but a loss compares its layers with the student's, token "
            'by token; expected no prompt: set teacher_prompt to ""'
        )
    return Models(prepared, source, folder, others, dimension, prompts)


def prompt_warning(recipe: Recipe, models: Models) -> str | None:
    """Return one line if the teacher has prompts that stay unused, and the recipe does not say which one it reads."""
    if models.prompts is None or recipe.teacher_prompt is not None or not recipe.uses_teacher_embeddings:
        return None
    used = models.prompts.document()
    unused = models.prompts.unused(used)
    if not unused:
        return None
    listed = ", ".join(f"{text!r} ({name})" for name, text in unused.items())
    reads = f"the prompt {used!r}" if used else "no prompt"
    return (
        f"warning: the teacher reads {reads} before each text; its prompts {listed} stay unused. Set teacher_prompt to "
        "the one that suits the text, or to what it is now"
    )


def prepare_student(
    recipe: Recipe,
    models: Models,
    data: DistillationData,
    cache: Path,
    steps: TimedSteps,
    store: EmbeddingStore | None = None,
    *,
    seed: int,
) -> Prepared:
    """Augment the text, build the vocabulary, encode with the teacher and initialize the student.

    Args:
        recipe: The recipe.
        models: Teacher and source.
        data: The text.
        cache: Folder for the teacher's embeddings and augmented sentences.
        steps: Times the steps.
        store: The teacher's embeddings, if they were computed before.
        seed: Decides samples and random weights.
    """
    augmentation = recipe.augmentation
    translators = (augmentation.forward_model, augmentation.backward_model)
    methods = augmentation_methods(
        wordnet=augmentation.wordnet,
        back_translation=translators if any(translators) else None,
        variants=augmentation.variants,
        substituted_share=augmentation.substituted_share,
        seed=seed,
    )
    augmented = augment_sentences(data.sentences, methods, cache / "augmentation", reporter=steps.reporter)
    text = build_training_text(augmented.sentences, data.parallel)
    seed_everything(seed)  # here, since loading models may draw random numbers too
    with steps.step("vocabulary"):
        tokenizer = build_vocabulary(recipe, models.source, text.texts)
        token_targets = target_token_embeddings(recipe, models.source, tokenizer)
    # Augmented sentences are a domain of their own, and so are translated ones.
    domains = np.array([data.domains.get(sentence, -1) for sentence in text.sentences], dtype=np.int64)
    check_text(recipe, models.dimension, text.sentences, text.texts, domains)
    cached, held_out = _teacher_embeddings(recipe, models, text.sentences, data.held_out, cache, steps, store)
    with steps.step("initialize"):
        projection = _projection(recipe, cached)
        student = build_student(recipe, models.source, tokenizer, token_targets, projection, text.texts)
    counts = augmented.report if recipe.augmentation.is_enabled else None
    dimension = int(student.get_embedding_dimension())
    space = _shared_space(recipe, cached, projection, dimension)
    return Prepared(
        student,
        tokenizer,
        text,
        domains,
        counts,
        cached,
        data.held_out,
        held_out,
        projection,
        token_targets,
        models.teacher,
        space,
    )


def _teacher_embeddings(
    recipe: Recipe,
    models: Models,
    sentences: Sequence[str],
    held_out: Sequence[str],
    cache: Path,
    steps: TimedSteps,
    store: EmbeddingStore | None,
) -> tuple[TextVectors | None, npt.NDArray[np.float16] | None]:
    """Return the teacher's embeddings of sentences and of held-out ones, if the recipe uses any."""
    if not recipe.uses_teacher_embeddings:
        return None, None
    count = len(sentences) + len(held_out)
    with steps.step("teacher", count * (1 + len(models.others)), "sentences") as advance:
        reused = len(sentences)
        if store is None:
            encoder = _teacher_encoder(recipe, models)
            store = EmbeddingStore.create(cache / "teacher" / encoder.identity.key, encoder.identity)
            reused = encoder.fill(store, sentences, advance)
            encoder.fill(store, held_out, lambda done: advance(len(sentences) + done))
        else:
            _check_store(store, recipe, models)
        if models.others:
            texts = [*sentences, *held_out]
            first = WeightedVectors(map_vectors(store, texts, cache / "vectors", reused=reused), recipe.teacher_weight)
            combined = combine_similarities(
                [first, *_other_teachers(recipe, models, texts, cache, advance)], cache / "vectors"
            )
            cached = replace(combined, shape=(len(sentences), combined.shape[1]))
            return cached, np.array(combined.vectors[len(sentences) :]) if held_out else None
        cached = map_vectors(store, sentences, cache / "vectors", reused=reused)
    return cached, store.read(store.find_all(held_out)) if held_out else None


def _other_teachers(
    recipe: Recipe, models: Models, texts: Sequence[str], cache: Path, advance: Advance
) -> Iterator[WeightedVectors]:
    """Yield the vectors of texts by each further teacher."""
    for number, (encoder, settings) in enumerate(zip(models.others, recipe.teachers, strict=True), start=1):
        store = EmbeddingStore.create(cache / "teacher" / encoder.identity.key, encoder.identity)
        reused = encoder.fill(store, texts, functools.partial(_advance_after, advance, number * len(texts)))
        yield WeightedVectors(map_vectors(store, texts, cache / "vectors", reused=reused), settings.weight)


def _advance_after(advance: Advance, before: int, done: int) -> None:
    advance(before + done)


def _teacher_encoder(recipe: Recipe, models: Models) -> TextEncoder:
    if models.teacher is None or models.prompts is None:
        raise ValueError("a teacher without a store of its embeddings is always loaded")
    return torch_encoder(recipe.teacher, models.teacher, models.folder, models.prompts.document(recipe.teacher_prompt))


def _check_store(store: EmbeddingStore, recipe: Recipe, models: Models) -> None:
    """Check that a store holds the teacher's embeddings: by fingerprint, or by name if the teacher is not here."""
    encoder, teacher = store.encoder, models.folder or models.teacher
    prompt = recipe.teacher_prompt if models.prompts is None else models.prompts.document(recipe.teacher_prompt)
    if teacher is not None and prompt is not None:
        fingerprint = model_fingerprint(teacher, normalize=recipe.head.normalize, prompt=prompt)
        is_teacher = encoder.fingerprint == fingerprint
    else:
        is_named = Path(encoder.name).absolute() == Path(recipe.teacher).absolute()
        is_teacher = is_named and encoder.normalized == recipe.head.normalize
        is_teacher &= recipe.teacher_prompt in (None, encoder.prompt)
    if not is_teacher:
        raise InputError(
            f"{store.folder} holds embeddings of {encoder.name}, normalized={encoder.normalized}, "
            f"prompt={encoder.prompt!r}, which is not the recipe's teacher, {recipe.teacher}, as the recipe has it; "
            "expected embeddings by that model: run edgeembed encode with it, or name model and prompt of the folder "
            "as teacher and teacher_prompt"
        )


def _projection(recipe: Recipe, cached: TextVectors | None) -> Projection | None:
    if cached is None or not needs_components(recipe, cached.shape[1]):
        return None
    return fit_pca(cached.vectors, recipe.head.dim)


def train_student(  # noqa: PLR0913  # everything that training depends on
    recipe: Recipe,
    prepared: Prepared,
    labeled: LabeledData,
    checkpoints: Path,
    steps: TimedSteps,
    *,
    resume: bool,
    seed: int,
    callbacks: Sequence[TrainerCallback] = (),
    report_to: Sequence[str] = (),
    logs: Path | None = None,
) -> list[StageResult]:
    """Train the student stage by stage, in place.

    Args:
        recipe: The recipe.
        prepared: The student and what it is going to learn.
        labeled: Labeled and scored pairs, and the development set.
        checkpoints: Folder for the run's checkpoints.
        steps: Times the steps.
        resume: Whether to continue from checkpoints.
        seed: Decides the order of the data, and dropout.
        callbacks: Callbacks of the Hugging Face trainer.
        report_to: Integrations of the Hugging Face trainer.
        logs: Folder for TensorBoard's logs, a folder for each stage; None for folders among the checkpoints.

    Returns:
        The result of each stage.
    """
    student, results = prepared.student, []
    for number, stage in enumerate(recipe.stages):
        dataset = stage_dataset(stage, prepared.text, labeled)
        targets = prepared.targets if stage.uses_teacher_embeddings else None
        seed_everything(seed)  # a resumed run may have drawn fewer random numbers, where it loads earlier stages
        with steps.step(f"stage {number + 1}", stage_steps(stage, len(dataset)), "steps") as advance:
            result = train_stage(
                student,
                dataset,
                build_loss(
                    student,
                    stage.losses,
                    targets,
                    teacher_name=recipe.teacher,
                    project_to_teacher=stage.project_to_teacher,
                ),
                stage,
                checkpoints=checkpoints / str(number),
                resume=resume,
                seed=seed,
                device=default_device(),
                dev=labeled.dev,
                callbacks=[StepCallback(advance), *callbacks],
                report_to=report_to,
                logs=None if logs is None else logs / f"stage-{number + 1}",
            )
        results.append(result)
    student[0].output_hidden_states = False
    if isinstance(student[0], CompactTransformer):
        student[0].fold_rounded_table()
    return results


def whiten_student(
    recipe: Recipe, prepared: Prepared, steps: TimedSteps
) -> tuple[SentenceTransformer, dict[str, Any] | None]:
    """Return the student with whitened embeddings, and the report of the whitening; the student itself without one."""
    if not recipe.head.whiten_dim:
        return prepared.student, None
    with steps.step("whiten"):
        whitened, report = add_pca_head(prepared.student, prepared.text.texts, dim=recipe.head.whiten_dim, whiten=True)
    return whitened, asdict(report)


def _shared_space(
    recipe: Recipe,
    cached: TextVectors | None,
    projection: Projection | None,
    dimension: int,
) -> str | None:
    """Return the name of the teacher's embedding space if a recipe teaches it to its student; None otherwise.

    It does if the last stage draws its embeddings to the teacher's own, of the same dimension: without a head or a
    learned projection in between, and without whitening afterwards.
    """
    if cached is None or projection is not None or recipe.head.whiten_dim or not recipe.stages[-1].teaches_space:
        return None
    if dimension != cached.shape[1]:
        return None
    return cached.encoder.space
