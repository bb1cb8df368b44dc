"""Small batches for tests of losses."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from edgeembed.losses.base import LossInputs


def inputs(student: torch.Tensor, target: torch.Tensor, teacher: torch.Tensor | None = None) -> LossInputs:
    ids = torch.tensor([[2, 5, 3, 0], [2, 6, 5, 3]])
    teacher = target if teacher is None else teacher
    rows = torch.arange(len(student))
    return LossInputs(student, target, teacher, rows, ids, (ids > 0).long(), student_raw=student, target_raw=target)


def random_inputs(batch: int = 7, dim: int = 5) -> tuple[LossInputs, "np.ndarray", "np.ndarray"]:
    """Return inputs that are not normalized, and the same embeddings in float64."""
    draw = np.random.default_rng(4)
    student, target = (draw.normal(size=(batch, dim)) for _ in range(2))
    return (
        inputs(torch.tensor(student, dtype=torch.float32), torch.tensor(target, dtype=torch.float32)),
        student,
        target,
    )


class LayeredTeacher(nn.Module):
    """A teacher with fixed hidden states."""

    def __init__(self, states: tuple[torch.Tensor, ...]) -> None:
        super().__init__()
        self.states = states

    def forward(self, **_: object) -> SimpleNamespace:
        return SimpleNamespace(hidden_states=self.states)


def layered(width: int) -> tuple[LossInputs, list["np.ndarray"], list["np.ndarray"]]:
    """Return inputs with a student of two layers and a teacher of four of width 3, and their states in float64."""
    draw = np.random.default_rng(6)
    ours = [draw.normal(size=(2, 4, width)) for _ in range(3)]
    theirs = [draw.normal(size=(2, 4, 3)) for _ in range(5)]
    states = tuple(torch.tensor(each, dtype=torch.float32) for each in ours)
    return replace(inputs(torch.ones(2, 1), torch.ones(2, 1)), hidden_states=states), ours, theirs


def matrices_of(loss: nn.Module, width: int) -> list["np.ndarray"]:
    return [np.eye(3)] * 2 if width == 3 else [each.detach().double().numpy() for each in loss.parameters()]
