"""Base of the losses that compare the layers of student and teacher."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import torch
from sentence_transformers import SentenceTransformer
from torch import nn

from edgeembed.architectures import encoder_layers
from edgeembed.losses.base import Loss, LossContext, LossInputs


class LayerLoss(Loss):
    """Base of the losses between the layers of student and teacher.

    Attributes:
        teacher_layers: Which of the teacher's layers the student's layers are compared with: its `last` ones, or
            layers `spread` evenly over its depth, the last one among them (Sun et al. 2019: PKD-Last and PKD-Skip).
    """

    compares_layers: ClassVar[bool] = True

    teacher_layers: Literal["last", "spread"] = "last"

    def teacher(self, context: LossContext) -> SentenceTransformer:
        """Return the teacher, whose layers are compared."""
        if context.teacher.teacher is None:
            raise ValueError("the loss compares layers with those of the teacher, which is not loaded")
        return context.teacher.teacher

    def compared(self, context: LossContext) -> tuple[nn.Module, list[int], tuple[int, int]]:
        """Return the first arguments of a `LayerLossModule`: encoder, layers and widths."""
        encoder = context.student[0].auto_model
        # A copy, since the teacher's layers may be cast elsewhere, and the trainer moves modules between devices.
        teacher = copy.deepcopy(self.teacher(context)[0].auto_model)
        layers = teacher_layers(len(encoder_layers(encoder)), len(encoder_layers(teacher)), self.teacher_layers)
        return teacher, layers, (encoder.config.hidden_size, teacher.config.hidden_size)


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


class LayerLossModule(nn.Module):
    """Hidden states of student and teacher, layer by layer.

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

    def pairs_of_layers(self, inputs: LossInputs) -> Iterator[tuple[nn.Module, torch.Tensor, torch.Tensor]]:
        """Yield each layer's matrix, and its hidden states of student and teacher, (batch, tokens, hidden size)."""
        yield from zip(self.matrices, inputs.hidden_states[1:], self._teacher_states(inputs), strict=False)

    @torch.no_grad()
    def _teacher_states(self, inputs: LossInputs) -> list[torch.Tensor]:
        (teacher,) = self._teacher
        output: Any = teacher.to(inputs.token_ids.device)(
            input_ids=inputs.token_ids, attention_mask=inputs.attention_mask, output_hidden_states=True
        )
        return [output.hidden_states[layer] for layer in self.layers]
