import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from datasets import Dataset
from edgeembed_runtime.errors import InputError
from safetensors import SafetensorError
from transformers import TrainerState

from edgeembed.distillation import distill, pipeline
from edgeembed.losses.cosine import Cosine
from edgeembed.models import load_model
from edgeembed.provenance import read_provenance
from edgeembed.recipe.loading import load_recipe
from edgeembed.recipe.schema import Recipe
from edgeembed.recipe.stages import StageSettings
from edgeembed.students.transformer import round_rows
from edgeembed.training.batches import LengthGroupedSampler
from edgeembed.training.callbacks import StepCallback

from .weights import assert_equal, weights  # tests are not a package


@pytest.fixture
def recipe(teacher_folder: Path) -> Recipe:
    return load_recipe(
        "compact",
        [
            f'teacher="{teacher_folder}"',
            "corpus.heldout=0",
            "vocabulary.kind=teacher",
            "student.layers=1",
            "student.token_dim=8",
            "student.max_seq_length=32",
            "head.dim=6",
            "stages.epochs=2",
            "stages.batch_size=32",
            "stages.checkpoint_steps=4",
            "stages.learning_rate=0.002",
        ],
    )


@pytest.fixture
def rounded(recipe: Recipe) -> Recipe:
    """A student whose token embeddings are rounded to four bits as it trains."""
    return recipe.replace(student=recipe.student.replace(table_bits=4))


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


def test_training_brings_the_student_closer_to_its_teacher(
    recipe: Recipe, teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    untrained = recipe.replace(stages=(recipe.stages[0].replace(epochs=0.01, learning_rate=1e-9),))
    distill(untrained, sentences, tmp_path / "untrained", cache=tmp_path / "cache")
    trained = recipe.replace(stages=(recipe.stages[0].replace(epochs=8),))
    report = distill(trained, sentences, tmp_path / "trained", cache=tmp_path / "cache")
    teacher = load_model(str(teacher_folder)).encode(sentences)

    def agreement(folder: Path) -> float:
        vectors = load_model(str(folder)).encode(sentences)
        centered = teacher - teacher.mean(axis=0)
        return float(np.corrcoef((vectors @ vectors.T).ravel(), (centered @ centered.T).ravel())[0, 1])

    assert agreement(tmp_path / "trained") > agreement(tmp_path / "untrained") + 0.05
    assert report.dimension == 6
    assert report.reused_sentences == len(sentences)
    assert set(report.seconds) == {"vocabulary", "teacher", "initialize", "stage 1"}


def test_the_same_seed_gives_the_same_weights_and_another_does_not(
    recipe: Recipe, sentences: list[str], tmp_path: Path
) -> None:
    for name, seed in (("one", 5), ("two", 5), ("other", 6)):
        distill(recipe, sentences, tmp_path / name, cache=tmp_path / "cache", seed=seed)
    assert_equal(tmp_path / "one", tmp_path / "two")
    left, right = weights(tmp_path / "one"), weights(tmp_path / "other")
    assert any(not torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("token_dim", [8, 32], ids=["narrow table", "as wide as the layers"])
def test_a_student_of_rounded_rows_is_written_with_a_table_of_them(
    token_dim: int, rounded: Recipe, sentences: list[str], tmp_path: Path
) -> None:
    recipe = rounded.replace(student=rounded.student.replace(token_dim=token_dim))
    distill(recipe, sentences, tmp_path / "student", cache=tmp_path / "cache")
    embedding = load_model(str(tmp_path / "student"))[0].auto_model.get_input_embeddings()
    table = (embedding.table if token_dim == 8 else embedding).weight.detach()
    assert table.shape[1] == token_dim
    torch.testing.assert_close(round_rows(table, 4), table)


class _InterruptedError(Exception):
    pass


def stopping_at(step: int) -> type:
    class _Stops(StepCallback):
        def on_step_end(self, _args: object, state: TrainerState, _control: object, **_: object) -> None:
            if state.global_step == step:
                raise _InterruptedError

    return _Stops


@pytest.fixture
def narrow(recipe: Recipe) -> Recipe:
    """A recipe with a loss that has parameters: linear layers between hidden states of different widths."""
    stage = recipe.stages[0].replace(losses={"mse": 0.5, "hidden_states": 0.5})
    student = recipe.student.replace(hidden_size=16, token_dim=0)
    return recipe.replace(student=student, head=recipe.head.replace(kind="linear"), stages=(stage,))


@pytest.fixture
def banked(recipe: Recipe) -> Recipe:
    """Contrastive distillation with a bank that reaches back over epochs, through a learned linear layer."""
    losses = {"contrastive_distillation": {"bank_size": 350}}
    stage = recipe.stages[0].replace(losses=losses, project_to_teacher=True)
    student = recipe.student.replace(hidden_size=16, token_dim=0)
    head = recipe.head.replace(kind="none", normalize=False)
    return recipe.replace(student=student, head=head, stages=(stage,))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recipe", "narrow", "banked", "rounded"])
def test_a_resumed_run_gives_the_weights_of_one_that_was_never_interrupted(
    name: str, request: pytest.FixtureRequest, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe: Recipe = request.getfixturevalue(name)
    with_dropout = recipe.replace(student=recipe.student.replace(dropout=0.1))
    cache = tmp_path / "cache"
    distill(with_dropout, sentences, tmp_path / "whole", cache=cache)

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "StepCallback", stopping_at(14))
        with pytest.raises(_InterruptedError):
            distill(with_dropout, sentences, tmp_path / "resumed", cache=cache)
    assert not (tmp_path / "resumed").exists()
    assert list(cache.glob("checkpoints/*/0/checkpoint-12"))
    distill(with_dropout, sentences, tmp_path / "resumed", cache=cache, resume=True)
    assert_equal(tmp_path / "whole", tmp_path / "resumed")
    assert not list(cache.glob("checkpoints/*/0"))


@pytest.mark.parametrize("kind", ["trimmed", "trained"])
def test_a_student_can_have_a_vocabulary_of_its_own(
    recipe: Recipe, sentences: list[str], tmp_path: Path, kind: Literal["trimmed", "trained"]
) -> None:
    size = 100
    chosen = recipe.replace(vocabulary=recipe.vocabulary.replace(kind=kind, size=size))
    report = distill(chosen, sentences, tmp_path / "student")
    assert report.vocabulary_size <= size
    assert np.isfinite(load_model(str(tmp_path / "student")).encode("the small cat")).all()


def test_the_resolved_recipe_is_saved_with_the_weights(recipe: Recipe, sentences: list[str], tmp_path: Path) -> None:
    distill(recipe, sentences, tmp_path / "student", seed=3)
    written = read_provenance(tmp_path / "student")
    resolved = {**recipe.to_dict(), "teacher": Path(recipe.teacher).name}  # its folder is this machine's alone
    assert written["recipe"] == json.loads(json.dumps(resolved))
    assert written["seed"] == 3


def test_a_student_with_unlisted_files_in_its_folder_is_not_replaced(
    recipe: Recipe, sentences: list[str], tmp_path: Path
) -> None:
    for seed in (3, 4):
        distill(recipe, sentences, tmp_path / "student", seed=seed, force=True)
    assert read_provenance(tmp_path / "student")["seed"] == 4
    (tmp_path / "student" / "0_Notes").mkdir()
    (tmp_path / "student" / "0_Notes" / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match=r"holds 0_Notes/mine\.txt, which its edgeembed_student\.json does not list"):
        distill(recipe, sentences, tmp_path / "student", seed=5, force=True)
    assert read_provenance(tmp_path / "student")["seed"] == 4


def test_an_existing_folder_raises_before_any_work_and_is_kept(
    recipe: Recipe, sentences: list[str], tmp_path: Path
) -> None:
    (tmp_path / "student").mkdir()
    (tmp_path / "student" / "mine.txt").write_text("keep")
    for force in (False, True):
        with pytest.raises(InputError, match=r"holds no edgeembed_student\.json but mine\.txt"):
            distill(recipe, sentences, tmp_path / "student", force=force)
    assert (tmp_path / "student" / "mine.txt").read_text() == "keep"
    assert not (tmp_path / "student.cache").exists()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("head.dim=33", "head.dim is 33, but the teacher's embeddings have 32"),
        ("student.layers=9", "has only 4"),
    ],
)
def test_more_than_the_teacher_has_raises_before_any_work(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, override: str, message: str
) -> None:
    asked = load_recipe(
        "compact",
        [
            f'teacher="{teacher_folder}"',
            "student.token_dim=8",
            "student.max_seq_length=32",
            "student.layers=1",
            "head.dim=6",
            override,
        ],
    )
    with pytest.raises(InputError, match=message):
        distill(asked, sentences, tmp_path / "student")
    assert list(tmp_path.iterdir()) == []


def test_no_sentences_raise(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="compact learns from text; expected --corpus"):
        distill(recipe, [], tmp_path / "student")


def test_batches_cover_all_sentences_in_groups_of_similar_length_and_a_new_order_each_epoch() -> None:
    dataset = Dataset.from_dict({"sentence": ["x"] * 1000})
    sampler = LengthGroupedSampler(dataset, batch_size=8, drop_last=False, generator=torch.Generator().manual_seed(1))
    first = list(sampler)
    sampler.set_epoch(1)
    second = list(sampler)
    assert sorted(row for batch in first for row in batch) == list(range(1000))
    assert first != second
    assert np.mean([max(batch) - min(batch) for batch in first]) < 60


def test_a_stage_has_the_cosine_loss_by_default() -> None:
    assert StageSettings().losses == {"cosine": Cosine(weight=1.0)}


@pytest.mark.slow
def test_an_incomplete_checkpoint_is_skipped(
    recipe: Recipe, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    distill(recipe, sentences, tmp_path / "whole", cache=cache)
    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "StepCallback", stopping_at(14))
        with pytest.raises(_InterruptedError):
            distill(recipe, sentences, tmp_path / "resumed", cache=cache)
    (stage,) = cache.glob("checkpoints/*/0")
    (stage / "checkpoint-16").mkdir()
    (stage / "checkpoint-16" / "compact_transformer.json").write_text("{}")
    distill(recipe, sentences, tmp_path / "resumed", cache=cache, resume=True)
    assert_equal(tmp_path / "whole", tmp_path / "resumed")


def test_a_full_disk_gives_one_line_and_no_student(
    recipe: Recipe, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("sentence_transformers.SentenceTransformer.save", full)
    with pytest.raises(InputError, match=r"cannot read or write .*No space left on device"):
        distill(recipe, sentences, tmp_path / "student")
    assert not (tmp_path / "student").exists()
    assert not list(tmp_path.glob(".student.*"))
