import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from datasets import Dataset
from edgeembed_runtime.errors import InputError
from safetensors import SafetensorError
from transformers import TrainerState

from edgeembed import distillation
from edgeembed.distillation import distil
from edgeembed.models import load_model, provenance
from edgeembed.recipe import Recipe, load_recipe
from edgeembed.stage_settings import StageSettings
from edgeembed.training import LengthGroupedSampler, StepCallback


@pytest.fixture
def recipe(teacher_folder: Path) -> Recipe:
    return load_recipe(
        "compact",
        [
            f'teacher="{teacher_folder}"',
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


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distillation, "default_device", lambda: "cpu")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = load_model(str(folder)).state_dict()
    return state


def assert_equal(ours: Path, theirs: Path) -> None:
    left, right = weights(ours), weights(theirs)
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_a_student_learns_to_point_where_its_teacher_points(
    recipe: Recipe, teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    untrained = replace(recipe, stages=(replace(recipe.stages[0], epochs=0.01, learning_rate=1e-9),))
    distil(untrained, sentences, tmp_path / "untrained", cache=tmp_path / "cache")
    trained = replace(recipe, stages=(replace(recipe.stages[0], epochs=8),))
    report = distil(trained, sentences, tmp_path / "trained", cache=tmp_path / "cache")
    teacher = load_model(str(teacher_folder)).encode(sentences)

    def agreement(folder: Path) -> float:
        vectors = load_model(str(folder)).encode(sentences)
        centred = teacher - teacher.mean(axis=0)
        return float(np.corrcoef((vectors @ vectors.T).ravel(), (centred @ centred.T).ravel())[0, 1])

    assert agreement(tmp_path / "trained") > agreement(tmp_path / "untrained") + 0.05
    assert report.dimension == 6
    assert report.reused_sentences == len(sentences)
    assert set(report.seconds) == {"vocabulary", "teacher", "initialise", "stage 1"}


def test_the_same_seed_gives_the_same_weights_and_another_does_not(
    recipe: Recipe, sentences: list[str], tmp_path: Path
) -> None:
    for name, seed in (("one", 5), ("two", 5), ("other", 6)):
        distil(recipe, sentences, tmp_path / name, cache=tmp_path / "cache", seed=seed)
    assert_equal(tmp_path / "one", tmp_path / "two")
    left, right = weights(tmp_path / "one"), weights(tmp_path / "other")
    assert any(not torch.equal(left[name], right[name]) for name in left)


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
    """A recipe with an objective that learns too: matrices between hidden states of unlike widths."""
    stage = replace(recipe.stages[0], objectives={"mse": 0.5, "hidden_states": 0.5})
    student = replace(recipe.student, hidden_size=16, token_dim=0)
    return replace(recipe, student=student, head=replace(recipe.head, kind="linear"), stages=(stage,))


@pytest.fixture
def banked(recipe: Recipe) -> Recipe:
    """Contrastive distillation with a bank that reaches back over epochs, through a learned matrix."""
    objectives = {"contrastive_distillation": 1.0}
    stage = replace(recipe.stages[0], objectives=objectives, bank_size=350, learned_matrix=True)
    student = replace(recipe.student, hidden_size=16, token_dim=0)
    head = replace(recipe.head, kind="none", normalize=False)
    return replace(recipe, student=student, head=head, stages=(stage,))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recipe", "narrow", "banked"])
def test_a_resumed_run_gives_the_weights_of_one_that_was_never_interrupted(
    name: str, request: pytest.FixtureRequest, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe: Recipe = request.getfixturevalue(name)
    with_dropout = replace(recipe, student=replace(recipe.student, dropout=0.1))
    cache = tmp_path / "cache"
    distil(with_dropout, sentences, tmp_path / "whole", cache=cache)

    with monkeypatch.context() as patched:
        patched.setattr(distillation, "StepCallback", stopping_at(14))
        with pytest.raises(_InterruptedError):
            distil(with_dropout, sentences, tmp_path / "resumed", cache=cache)
    assert not (tmp_path / "resumed").exists()
    assert list(cache.glob("checkpoints/*/0/checkpoint-12"))
    distil(with_dropout, sentences, tmp_path / "resumed", cache=cache, resume=True)
    assert_equal(tmp_path / "whole", tmp_path / "resumed")
    assert not list(cache.glob("checkpoints/*/0"))


@pytest.mark.parametrize("kind", ["trimmed", "tailored"])
def test_a_student_can_have_a_vocabulary_of_its_own(
    recipe: Recipe, sentences: list[str], tmp_path: Path, kind: Literal["trimmed", "tailored"]
) -> None:
    size = 100
    chosen = replace(recipe, vocabulary=replace(recipe.vocabulary, kind=kind, size=size))
    report = distil(chosen, sentences, tmp_path / "student")
    assert report.vocabulary_size <= size
    assert np.isfinite(load_model(str(tmp_path / "student")).encode("the small cat")).all()


def test_the_resolved_recipe_lies_beside_the_weights(recipe: Recipe, sentences: list[str], tmp_path: Path) -> None:
    distil(recipe, sentences, tmp_path / "student", seed=3)
    written = provenance(tmp_path / "student")
    resolved = {**recipe.to_dict(), "teacher": Path(recipe.teacher).name}  # its folder is this machine's alone
    assert written["recipe"] == json.loads(json.dumps(resolved))
    assert written["seed"] == 3


def test_a_student_is_replaced_only_if_all_that_is_in_its_folder_is_listed(
    recipe: Recipe, sentences: list[str], tmp_path: Path
) -> None:
    for seed in (3, 4):
        distil(recipe, sentences, tmp_path / "student", seed=seed, force=True)
    assert provenance(tmp_path / "student")["seed"] == 4
    (tmp_path / "student" / "0_Notes").mkdir()
    (tmp_path / "student" / "0_Notes" / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match=r"holds 0_Notes/mine\.txt, which its edgeembed_student\.json does not list"):
        distil(recipe, sentences, tmp_path / "student", seed=5, force=True)
    assert provenance(tmp_path / "student")["seed"] == 4


def test_an_existing_folder_is_refused_before_work_and_kept(
    recipe: Recipe, sentences: list[str], tmp_path: Path
) -> None:
    (tmp_path / "student").mkdir()
    (tmp_path / "student" / "mine.txt").write_text("keep")
    for force in (False, True):
        with pytest.raises(InputError, match=r"holds no edgeembed_student\.json but mine\.txt"):
            distil(recipe, sentences, tmp_path / "student", force=force)
    assert (tmp_path / "student" / "mine.txt").read_text() == "keep"
    assert not (tmp_path / "student.cache").exists()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("head.dim=33", "head.dim is 33, but the teacher's vectors have 32"),
        ("student.layers=9", "has only 4"),
    ],
)
def test_more_than_the_teacher_has_is_refused_before_work(
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
        distil(asked, sentences, tmp_path / "student")
    assert list(tmp_path.iterdir()) == []


def test_no_sentences_are_refused(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="compact learns from text; expected --corpus"):
        distil(recipe, [], tmp_path / "student")


def test_batches_hold_every_sentence_once_neighbours_in_length_and_a_new_order_each_epoch() -> None:
    dataset = Dataset.from_dict({"sentence": ["x"] * 1000})
    sampler = LengthGroupedSampler(dataset, batch_size=8, drop_last=False, generator=torch.Generator().manual_seed(1))
    first = list(sampler)
    sampler.set_epoch(1)
    second = list(sampler)
    assert sorted(row for batch in first for row in batch) == list(range(1000))
    assert first != second
    assert np.mean([max(batch) - min(batch) for batch in first]) < 60


def test_a_stage_counts_in_whole_settings() -> None:
    assert StageSettings().objectives == {"cosine": 1.0}


@pytest.mark.slow
def test_a_checkpoint_that_was_cut_short_is_passed_over(
    recipe: Recipe, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    distil(recipe, sentences, tmp_path / "whole", cache=cache)
    with monkeypatch.context() as patched:
        patched.setattr(distillation, "StepCallback", stopping_at(14))
        with pytest.raises(_InterruptedError):
            distil(recipe, sentences, tmp_path / "resumed", cache=cache)
    (stage,) = cache.glob("checkpoints/*/0")
    (stage / "checkpoint-16").mkdir()
    (stage / "checkpoint-16" / "compact_transformer.json").write_text("{}")
    distil(recipe, sentences, tmp_path / "resumed", cache=cache, resume=True)
    assert_equal(tmp_path / "whole", tmp_path / "resumed")


def test_a_full_disk_gives_one_line_and_no_student(
    recipe: Recipe, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("sentence_transformers.SentenceTransformer.save", full)
    with pytest.raises(InputError, match=r"cannot read or write .*No space left on device"):
        distil(recipe, sentences, tmp_path / "student")
    assert not (tmp_path / "student").exists()
    assert not list(tmp_path.glob(".student.*"))
