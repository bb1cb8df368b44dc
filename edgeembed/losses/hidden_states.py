"""Losses that compare the layers of student and teacher."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from edgeembed.losses.base import LossInputs
from edgeembed.processes import mean_over_processes, own_rows


def teacher_layers(student_depth: int, teacher_depth: int, choice: Literal["last", "spread"]) -> list[int]:
    """Return the teacher's layer that each of the student's layers is compared with, counted from 1.

    Args:
        student_depth: Number of the student's layers.
        teacher_depth: Number of the teacher's layers, not less.
        choice: "last" for the teacher's last layers, "spread" for layers at even distances, the last one among them
            (Sun et al. 2019: PKD-Last and PKD-Skip; TinyBERT maps layers as the latter does).
    """
    if choice == "last":
        return list(range(teacher_depth - student_depth + 1, teacher_depth + 1))
    return [round(teacher_depth * number / student_depth) for number in range(1, student_depth + 1)]


class _LayerLoss(nn.Module):
    """Base of the losses between layers.

    Args:
        teacher: The teacher's encoder, with the student's vocabulary. It runs without gradients and is not saved.
        layers: For each of the student's layers, from the first on, the teacher's layer that it is compared with,
            counted from 1. If there are fewer than the student has, its last ones are not compared.
        widths: Hidden sizes of student and teacher. If they differ, a learned linear layer for each pair of layers
            projects the student's hidden states.
    """

    def __init__(self, teacher: nn.Module, layers: Sequence[int], widths: tuple[int, int]) -> None:
        super().__init__()
        student_width, teacher_width = widths
        self._teacher = [teacher.eval().requires_grad_(False)]  # in a list, so that it is not a submodule
        self.layers = tuple(layers)
        self.matrices = nn.ModuleList(
            nn.Identity() if student_width == teacher_width else nn.Linear(student_width, teacher_width, bias=False)
            for _ in layers
        )

    def _layers(self, inputs: LossInputs) -> Iterator[tuple[nn.Module, torch.Tensor, torch.Tensor]]:
        """Yield each layer's matrix, and its hidden states of student and teacher, (batch, tokens, hidden size)."""
        yield from zip(self.matrices, inputs.hidden_states[1:], self._teacher_states(inputs), strict=False)

    @torch.no_grad()
    def _teacher_states(self, inputs: LossInputs) -> list[torch.Tensor]:
        (teacher,) = self._teacher
        output: Any = teacher.to(inputs.token_ids.device)(
            input_ids=inputs.token_ids, attention_mask=inputs.attention_mask, output_hidden_states=True
        )
        return [output.hidden_states[layer] for layer in self.layers]


class HiddenStates(_LayerLoss):
    """Mean squared error between hidden states of student and teacher.

    SimTDE's ablation "+ hidden states distillation" (Xie et al. 2023) and, with learned linear layers between different
    widths, its baseline LMX-KD, after TinyBERT's layer distillation (Jiao et al. 2020, equation 8).
    """

    def forward(self, inputs: LossInputs) -> torch.Tensor:
        """Return the error over tokens without padding, dimensions and layers, a float32 scalar."""
        tokens = inputs.attention_mask.bool()
        errors = [
            (matrix(student).float() - teacher.float())[tokens].square().mean()
            for matrix, student, teacher in self._layers(inputs)
        ]
        count = int(tokens.sum()) if own_rows(len(inputs.rows)) else 0
        return mean_over_processes(torch.stack(errors).mean(), count)


class Patient(_LayerLoss):
    """Squared distance between the normalized hidden states that represent the sentence.

    Patient knowledge distillation (Sun et al. 2019, equation 7). There the hidden state of the first token represents
    the sentence, since the classifier reads it; here each model's hidden states are pooled as its last layer is. The
    last layer is left to the loss on sentence embeddings, as the paper leaves it to the one on predictions.

    Args:
        teacher: As for `_LayerLoss`.
        layers: As for `_LayerLoss`.
        widths: As for `_LayerLoss`.
        poolings: The poolings of student and teacher.
    """

    def __init__(
        self, teacher: nn.Module, layers: Sequence[int], widths: tuple[int, int], poolings: tuple[Pooling, Pooling]
    ) -> None:
        super().__init__(teacher, layers, widths)
        self._poolings = poolings  # they have no weights

    def forward(self, inputs: LossInputs) -> torch.Tensor:
        """Return the mean distance over batch and layers, a float32 scalar."""
        student_pooling, teacher_pooling = self._poolings
        distances = []
        for matrix, student, teacher in self._layers(inputs):
            ours = matrix(_pooled(student_pooling, student, inputs)).float()
            theirs = _pooled(teacher_pooling, teacher, inputs).float()
            difference = nn.functional.normalize(ours) - nn.functional.normalize(theirs)
            distances.append(difference.square().sum(dim=1).mean())
        return mean_over_processes(torch.stack(distances).mean(), own_rows(len(inputs.rows)))


def _pooled(pooling: Pooling, states: torch.Tensor, inputs: LossInputs) -> torch.Tensor:
    """Return pooled hidden states, float (batch, hidden size)."""
    features = {"token_embeddings": states, "attention_mask": inputs.attention_mask}
    pooled: torch.Tensor = pooling(features)["sentence_embedding"]
    return pooled
