"""Recipes at the size of the tiny teacher."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import AutoConfig, AutoModel

from edgeembed.architectures import encoder_layers, resized_config
from edgeembed.corpus.parallel import ParallelText
from edgeembed.distillation import DistillationReport, distill, pipeline
from edgeembed.distillation.data import DistillationData
from edgeembed.models import load_model
from edgeembed.progress import SilentReporter, TimedSteps
from edgeembed.recipe.loading import load_recipe
from edgeembed.recipe.schema import Recipe
from edgeembed.students.transformer import build_encoder
from edgeembed.training.data import LabeledData

TEACHER_WIDTH = 32


INDEPENDENT_WIDTH = 24


def tiny(name: str, teacher_folder: Path, *changes: str) -> Recipe:
    """Return a recipe with its sizes reduced to fit the tiny teacher."""
    whole = load_recipe(name)
    sizes = [
        f'teacher="{teacher_folder}"',
        "augmentation.required=false",
        "corpus.heldout=0",
        "student.max_seq_length=32",
        "vocabulary.size=100",
    ]
    for key, size in {
        "student.token_dim": 8 if whole.student.token_dim else 0,
        "student.hidden_size": 16 if whole.student.hidden_size else 0,
        "student.intermediate_size": 32 if whole.student.intermediate_size else 0,
        "head.dim": {"teacher_pca": 16}.get(whole.head.kind, TEACHER_WIDTH if whole.head.dim == 384 else 6),
        "head.whiten_dim": 6 if whole.head.whiten_dim else 0,
    }.items():
        sizes.append(f"{key}={size}")
    if whole.student.source:
        sizes.append(f'student.source="{teacher_folder}"')
    if whole.vocabulary.file:
        sizes.append(f'vocabulary.file="{teacher_folder}"')
    if any(stage.uses_scored_pairs for stage in whole.stages):
        sizes.append("stages.losses.gold_similarity.max_score=9")
    recipe = load_recipe(name, [*sizes, *changes])
    stages = tuple(stage.replace(epochs=1.0, batch_size=32) for stage in recipe.stages)
    return recipe.replace(stages=stages)


def made(
    recipe: Recipe,
    sentences: list[str],
    folder: Path,
    pairs: Path,
    *,
    dev: Path | None = None,
    parallel: ParallelText | None = None,
) -> DistillationReport:
    labeled = [pairs] if any(stage.uses_pairs for stage in recipe.stages) else []
    scored = [dev] if dev and any(stage.uses_scored_pairs for stage in recipe.stages) else []
    corpus: Sequence[str | Path] = sentences
    if any(loss.compares_domains for stage in recipe.stages for loss in stage.losses.values()):  # each file is one
        corpus = [folder / "one.txt", folder / "other.txt"]
        for number, file in enumerate(map(Path, corpus)):
            file.write_text("\n".join(sentences[number::2]))
    translated = parallel if recipe.parallel.required else None
    out = folder / "student"
    return distill(recipe, corpus, out, parallel=translated or (), pairs=labeled, scored=scored)


def prepared(recipe: Recipe, sentences: list[str], folder: Path) -> pipeline.Prepared:
    """Return the student of a recipe before its first step, and what it is going to learn."""
    data = DistillationData(sentences, [], {}, None, LabeledData(None, (), None), ())
    steps = TimedSteps(SilentReporter())
    models_ = pipeline.load_models(recipe, recipe.teacher)
    return pipeline.prepare_student(recipe, models_, data, folder, steps, seed=0)


def weights_of(recipe: Recipe, source: Mapping[str, int]) -> int:
    """Return the number of weights of a recipe's encoder, without head, from a BERT of these sizes."""
    shape, vocabulary = recipe.student, recipe.vocabulary
    sizes = {"intermediate_size": 4 * source["hidden_size"], "num_attention_heads": 2, **source}
    with torch.device("meta"):  # shapes without weights
        encoder = AutoModel.from_config(AutoConfig.for_model("bert", **sizes))
        config = resized_config(
            encoder,
            layers=shape.layers or source["num_hidden_layers"],
            hidden_size=shape.hidden_size or source["hidden_size"],
            dropout=0.0,
        )
        config.vocab_size = vocabulary.size if vocabulary.kind == "trained" else config.vocab_size
        student = build_encoder(config, shape.token_dim)
    return sum(weight.numel() for weight in student.parameters())


BERT_BASE = {"hidden_size": 768, "num_hidden_layers": 12}


MINILM = {"hidden_size": 384, "num_hidden_layers": 6}


BERT_TINY = {"hidden_size": 128, "num_hidden_layers": 2}


TINYBERT = {"hidden_size": 312, "num_hidden_layers": 4, "intermediate_size": 1200}


def check_trains(
    name: str,
    teacher_folder: Path,
    sentences: list[str],
    pairs: Path,
    dev: Path,
    parallel: ParallelText,
    folder: Path,
) -> None:
    """Train the student of a recipe, and check that it encodes."""
    recipe = tiny(name, teacher_folder)
    report = made(recipe, sentences, folder, pairs, dev=dev, parallel=parallel)
    student = load_model(str(folder / "student"))
    vectors = student.encode(sentences[:10])
    assert vectors.shape == (10, report.dimension)
    assert np.isfinite(vectors).all()
    assert np.ptp(vectors, axis=0).max() > 0
    if recipe.student.architecture == "transformer":
        assert len(encoder_layers(student[0].auto_model)) == (recipe.student.layers or 4)
    assert np.isfinite(report.losses).all()
