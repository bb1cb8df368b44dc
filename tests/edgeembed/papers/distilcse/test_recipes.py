"""The recipes of distilcse, on a tiny random teacher."""

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from transformers import TrainerCallback, TrainerState

from edgeembed.distillation import distill, pipeline
from edgeembed.models import load_model
from edgeembed.recipe.loading import load_recipe

from ...tiny_recipes import (  # noqa: TID252
    TEACHER_WIDTH,
    made,
    tiny,
)


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


@pytest.mark.parametrize("structure", [(), ("student.pooling=cls", "head.kind=mlp")], ids=["mean", "SimCSE's"])
def test_a_second_stage_can_start_from_the_student_of_a_first(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path, structure: tuple[str, ...]
) -> None:
    first = tmp_path / "first" / "student"
    recipe = tiny("distilcse", teacher_folder, *structure)
    distill(recipe.replace(stages=recipe.stages[:1]), sentences, first)
    unmoved = tiny("simcse", teacher_folder, f'student.source="{first}"', "stages.learning_rate=1e-12", *structure)
    stages = tuple(stage.replace(learning_rate=1e-12) for stage in unmoved.stages)
    made(unmoved.replace(stages=stages), sentences, tmp_path, pairs)
    before, after = (load_model(str(folder)).encode(sentences) for folder in (first, tmp_path / "student"))
    np.testing.assert_allclose(after, before, atol=1e-5)


def test_a_simcse_student_embeds_the_first_token_through_a_linear_layer_and_a_tanh(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    """DistilCSE, section 4.2: an MLP on top of the first token, for teacher and students."""
    made(tiny("simcse", teacher_folder, "student.pooling=cls", "head.kind=mlp"), sentences, tmp_path, pairs)
    student = load_model(str(tmp_path / "student"))
    dense = student[2].linear
    first = student.encode(sentences[:3], output_value="token_embeddings")
    tokens = torch.stack([tokens[0] for tokens in first])
    expected = torch.tanh(tokens @ dense.weight.T + dense.bias).detach().cpu().numpy()
    np.testing.assert_allclose(student.encode(sentences[:3]), expected, atol=1e-5)
    assert dense.weight.shape == (TEACHER_WIDTH, TEACHER_WIDTH)


@pytest.mark.parametrize("name", ["", "-kd", "-pkd", "-prototype-kd", "-one-stage"])
def test_distilcse_has_the_papers_settings(name: str) -> None:
    """Section 4.2: Adam without decay or clipping, a look every 125 steps, a patience of three epochs."""
    first, *second = load_recipe(f"distilcse{name}").stages
    assert (first.epochs, first.batch_size, first.learning_rate, first.patience) == (20, 512, 3e-4, 3)
    for stage in second:
        assert (stage.epochs, stage.batch_size, stage.learning_rate, stage.patience) == (5, 128, 5e-5, 0)
    for stage in (first, *second):
        assert (stage.weight_decay, stage.max_grad_norm, stage.checkpoint_steps) == (0, 0, 125)
    assert not first.group_by_length


class _FirstStep(TrainerCallback):  # type: ignore[misc]  # transformers carries no types
    """Records weights, gradients and the learning rate of the first step."""

    def __init__(self) -> None:
        self.before: dict[str, torch.Tensor] = {}
        self.gradients: dict[str, torch.Tensor] = {}
        self.after: dict[str, torch.Tensor] = {}

    def on_pre_optimizer_step(self, *_: object, model: torch.nn.Module, **__: object) -> None:
        if not self.before:
            trained = {name: each for name, each in model.named_parameters() if each.grad is not None}
            self.before = {name: each.detach().clone() for name, each in trained.items()}
            self.gradients = {name: each.grad.clone() for name, each in trained.items() if each.grad is not None}

    def on_optimizer_step(self, *_: object, model: torch.nn.Module, **__: object) -> None:
        if not self.after:
            self.after = {name: each.detach().clone() for name, each in model.named_parameters()}


def test_distilcse_takes_steps_of_adam_without_decay_or_clipping(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    recipe, first = tiny("distilcse-one-stage", teacher_folder, "stages.losses.mse=1000"), _FirstStep()
    distill(recipe, sentences, tmp_path / "student", callbacks=[first])
    norm = torch.stack([gradient.norm() for gradient in first.gradients.values()]).norm()
    assert norm > 1  # where other recipes clip it
    for name, gradient in first.gradients.items():
        # Kingma and Ba 2014, algorithm 1, with t = 1: both moments are corrected to those of this gradient.
        moved = 3e-4 * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(first.after[name], first.before[name] - moved, atol=1e-7, rtol=1e-5)


def test_patience_is_in_epochs(
    teacher_folder: Path, sentences: list[str], dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage whose score never changes ends so many epochs after its first look at the development set."""

    class Looks(TrainerCallback):  # type: ignore[misc]  # transformers carries no types
        steps: ClassVar[list[int]] = []

        def on_evaluate(self, _args: object, state: TrainerState, _control: object, **_: object) -> None:
            self.steps.append(state.global_step)

    monkeypatch.setattr("edgeembed.training.trainer.has_bf16", lambda _device: False)
    recipe = tiny("distilcse-one-stage", teacher_folder, "stages.learning_rate=1e-12")
    stage = recipe.stages[0].replace(epochs=20.0, patience=2.0, checkpoint_steps=3)
    distill(recipe.replace(stages=(stage,)), sentences[:192], tmp_path / "student", dev=dev, callbacks=[Looks()])
    assert Looks.steps == [3, 6, 9, 12, 15]  # six steps an epoch


def test_a_student_can_start_from_one_with_a_factorized_embedding_table(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    first = tmp_path / "first" / "student"
    distill(tiny("compact", teacher_folder), sentences, first)
    made(tiny("simcse", teacher_folder, f'student.source="{first}"'), sentences, tmp_path, pairs)
    before, after = (load_model(str(folder))[0].auto_model for folder in (first, tmp_path / "student"))
    ids = torch.arange(20)
    table = before.get_input_embeddings()(ids)
    torch.testing.assert_close(after.get_input_embeddings()(ids), table, atol=1e-2, rtol=0)
