"""From text and a teacher to a student: the steps of `edgeembed distill`."""

import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from edgeembed_exporters.tailoring.head import dense_of
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.writing import new_folder, refuse_existing
from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from tokenizers import Tokenizer
from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from edgeembed.augmentation import AugmentationReport, augment
from edgeembed.corpus import Corpus, gather_corpus
from edgeembed.hardware import default_device
from edgeembed.models import PROVENANCE_FILE, load_model, load_tokenizer, model_folder
from edgeembed.objectives import OBJECTIVES, DistillationLoss
from edgeembed.progress import Advance, Reporter, SilentReporter
from edgeembed.projection import Projection, fit_pca
from edgeembed.recipe import Recipe
from edgeembed.students.transformer import CompactTransformer, check_teacher
from edgeembed.teacher import teacher_fingerprint, teacher_vectors
from edgeembed.training import seed_everything, train_stage
from edgeembed.vocabulary import source_rows, trim_vocabulary

_COUNTED_SENTENCES = 100_000


@dataclass(frozen=True)
class DistilReport:
    """What a distillation did.

    Attributes:
        student: The student's folder.
        parameters: Weights of the student, token table included.
        sentences: Sentences it was distilled from.
        vocabulary_size: Tokens it knows.
        dimension: Dimensions of its vectors.
        explained_variance: Share of the teacher's variance in the head's dimensions; `None` without a PCA head.
        reused_sentences: Sentences whose teacher vectors were found in the cache.
        augmentation: What was made of the sentences before; `None` where the recipe asks for nothing.
        losses: Mean loss of each stage.
        seconds: Wall-clock time of each step.
    """

    student: str
    parameters: int
    sentences: int
    vocabulary_size: int
    dimension: int
    explained_variance: float | None
    reused_sentences: int
    augmentation: AugmentationReport | None
    losses: tuple[float, ...]
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


def distil(  # noqa: PLR0913  # what the command offers
    recipe: Recipe,
    sentences: Sequence[str],
    out: Path,
    *,
    cache: Path | None = None,
    resume: bool = False,
    seed: int = 0,
    force: bool = False,
    reporter: Reporter | None = None,
    command: str | None = None,
) -> DistilReport:
    """Distil a student from a teacher over unlabelled sentences.

    Args:
        recipe: What the student is to be.
        sentences: Distinct sentences, without those that are held out.
        out: Folder for the student, which loads as a sentence-transformer.
        cache: Folder for the teacher's vectors and the checkpoints; beside `out` where not given. It may be shared.
        resume: Whether to go on from the checkpoints of an interrupted run of the same recipe, text and seed.
        seed: Decides every draw; the same seed gives the same weights on the same machine and libraries.
        force: Whether an existing `out` is replaced.
        reporter: Hears of the steps.
        command: What the user typed, which the student's card repeats.

    Returns:
        What was done, and how long each step took.

    Raises:
        InputError: If `out` exists, the recipe asks for more than the teacher has, or there is too little text.
    """
    refuse_existing(out, force=force, marker=PROVENANCE_FILE)
    if not sentences:
        raise InputError("there are no sentences to distil from; expected thousands: give a --corpus with text in it")
    clock = _Clock(reporter or SilentReporter())
    cache = cache or out.with_name(f"{out.name}.cache")
    augmented = augment(sentences, recipe.augmentation, cache / "augmentation", seed=seed, reporter=clock.reporter)
    seed_everything(seed)
    ordered = sorted(augmented.sentences, key=len)
    teacher = load_model(recipe.teacher, device=default_device())
    _check(recipe, teacher)
    tokenizer = _vocabulary(recipe, ordered, clock)
    fingerprint = teacher_fingerprint(model_folder(recipe.teacher))
    with clock.step("teacher", len(ordered)) as advance:
        cached = teacher_vectors(teacher, fingerprint, ordered, cache / "teacher", progress=advance)
    with clock.step("initialise"):
        projection = fit_pca(cached.vectors, recipe.head.dim) if recipe.head.kind == "pca" else None
        targets = _token_targets(teacher, tokenizer, recipe)
        student = _student(recipe, teacher, tokenizer, targets, projection, ordered)
    checkpoints = cache / "checkpoints" / _run_key(recipe, cached.folder.name, seed)
    losses = _train(
        recipe,
        student,
        ordered,
        cached.vectors,
        projection,
        targets,
        checkpoints,
        clock,
        resume=resume,
        seed=seed,
    )
    report = DistilReport(
        student=str(out),
        parameters=sum(weight.numel() for weight in student.parameters()),
        sentences=len(ordered),
        vocabulary_size=tokenizer.get_vocab_size(),
        dimension=int(student.get_embedding_dimension()),
        explained_variance=projection.explained_variance if projection else None,
        reused_sentences=cached.reused_sentences,
        augmentation=augmented.report if recipe.augmentation.is_wanted else None,
        losses=losses,
        seconds=clock.seconds,
    )
    save_student(student, out, recipe, report, seed=seed, force=force, command=command)
    shutil.rmtree(checkpoints, ignore_errors=True)
    return report


def save_student(  # what a student's folder tells of it
    student: SentenceTransformer,
    out: Path,
    recipe: Recipe,
    report: DistilReport,
    *,
    seed: int,
    force: bool,
    command: str | None = None,
) -> None:
    """Write a student's folder, the resolved recipe beside the weights.

    Raises:
        InputError: If `out` exists and `force` is not set, or cannot be written.
    """
    with new_folder(out, force=force, marker=PROVENANCE_FILE) as folder:
        try:
            student.cpu().save(str(folder), create_model_card=False)
        except SafetensorError as error:  # it reports a full disk in its own way
            raise InputError(f"cannot write {out}: {error}; make room there or choose another place") from error
        provenance = {
            "teacher": recipe.teacher,
            "licences": list(recipe.corpus.licences),
            "command": command,
            "seed": seed,
            "recipe": recipe.to_dict(),
            "report": {**asdict(report), "student": out.name},
        }
        (folder / PROVENANCE_FILE).write_text(json.dumps(provenance, indent=2) + "\n", encoding="utf-8")


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


class _Progress(TrainerCallback):  # type: ignore[misc]  # transformers carries no types
    def __init__(self, advance: Advance) -> None:
        self.advance = advance

    def on_step_end(self, _args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_: Any) -> None:
        self.advance(state.global_step)


def _check(recipe: Recipe, teacher: SentenceTransformer) -> None:
    check_teacher(
        teacher[0].auto_model,
        layers=recipe.student.layers,
        token_dim=recipe.student.token_dim,
        max_seq_length=recipe.student.max_seq_length,
    )
    width = int(teacher.get_embedding_dimension())
    if recipe.head.kind == "pca" and recipe.head.dim > width:
        raise InputError(
            f"head.dim is {recipe.head.dim}, but the teacher's vectors have {width} dimensions; choose {width} or less"
        )


def _vocabulary(recipe: Recipe, sentences: Sequence[str], clock: _Clock) -> Tokenizer:
    settings = recipe.vocabulary
    with clock.step("vocabulary"):
        if settings.kind == "tailored":
            from edgeembed.vocabulary import train_vocabulary

            return train_vocabulary(sentences, settings.size, lowercase=settings.lowercase)
        tokenizer = load_tokenizer(recipe.teacher)
        return trim_vocabulary(tokenizer, sentences, settings.size) if settings.kind == "trimmed" else tokenizer


def _token_targets(teacher: SentenceTransformer, tokenizer: Tokenizer, recipe: Recipe) -> torch.Tensor:
    rows = source_rows(tokenizer, load_tokenizer(recipe.teacher))
    table = teacher[0].auto_model.get_input_embeddings().weight.detach().float().cpu()
    return torch.stack([table[ids].mean(dim=0) for ids in rows])


def _token_counts(tokenizer: Tokenizer, sentences: Sequence[str]) -> torch.Tensor:
    step = max(1, len(sentences) // _COUNTED_SENTENCES)
    counts: Counter[int] = Counter()
    for encoding in tokenizer.encode_batch_fast(list(sentences[::step])):
        counts.update(encoding.ids)
    return torch.tensor([counts[token] for token in range(tokenizer.get_vocab_size())], dtype=torch.float32)


def _student(  # the parts of a student
    recipe: Recipe,
    teacher: SentenceTransformer,
    tokenizer: Tokenizer,
    targets: torch.Tensor,
    projection: Projection | None,
    sentences: Sequence[str],
) -> SentenceTransformer:
    transformer = CompactTransformer.from_teacher(
        teacher[0].auto_model.cpu(),
        tokenizer,
        targets,
        # The square root keeps a few hundred frequent words from claiming the whole table.
        token_weights=(_token_counts(tokenizer, sentences) + 1).sqrt(),
        token_dim=recipe.student.token_dim,
        layers=recipe.student.layers,
        max_seq_length=recipe.student.max_seq_length,
        dropout=recipe.student.dropout,
    )
    width = transformer.get_embedding_dimension()
    modules: list[nn.Module] = [transformer, Pooling(width, pooling_mode="mean"), Normalize()]
    if projection is not None:
        modules += [dense_of(projection), Normalize()]
    return SentenceTransformer(modules=modules, device=default_device())


def _train(  # noqa: PLR0913  # one call a stage
    recipe: Recipe,
    student: SentenceTransformer,
    sentences: Sequence[str],
    vectors: np.ndarray[Any, np.dtype[np.float16]],
    projection: Projection | None,
    targets: torch.Tensor,
    checkpoints: Path,
    clock: _Clock,
    *,
    resume: bool,
    seed: int,
) -> tuple[float, ...]:
    losses = []
    if not resume:
        shutil.rmtree(checkpoints, ignore_errors=True)
    for number, stage in enumerate(recipe.stages):
        embedding = student[0].auto_model.get_input_embeddings()
        objectives = {name: OBJECTIVES[name](embedding, targets) for name in stage.objectives}
        loss = DistillationLoss(student, vectors, projection, objectives, stage.objectives)
        steps = int(stage.epochs * -(-len(sentences) // stage.batch_size))
        with clock.step(f"stage {number + 1}", steps) as advance:
            losses.append(
                train_stage(
                    student,
                    sentences,
                    loss,
                    stage,
                    checkpoints=checkpoints / str(number),
                    resume=resume,
                    seed=seed,
                    device=default_device(),
                    callbacks=[_Progress(advance)],
                )
            )
    return tuple(losses)


def _run_key(recipe: Recipe, text_key: str, seed: int) -> str:
    content = json.dumps([recipe.to_dict(), text_key, seed], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
