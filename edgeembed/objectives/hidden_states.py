"""Go the teacher's way, layer by layer."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from edgeembed.objectives.base import ObjectiveInputs


class HiddenStates(nn.Module):
    """Mean squared error between the student's layers and some of the teacher's.

    SimTDE's ablation ("+ hidden states distillation": the teacher's last layers) and, with learnable matrices between
    unlike widths, its baseline LMX-KD, after TinyBERT's layer-to-layer distillation (Jiao et al. 2020, equation 8).

    Args:
        teacher: The teacher's encoder; it must know the student's tokens. It is run without gradients, and never saved.
        layers: For each of the student's layers the teacher's layer that it is to follow, counted from 1.
        widths: Of the student's and of the teacher's hidden states; a learnable matrix a layer where they differ.
    """

    def __init__(self, teacher: nn.Module, layers: Sequence[int], widths: tuple[int, int]) -> None:
        super().__init__()
        ours, theirs = widths
        self._teacher = [teacher.eval().requires_grad_(False)]  # in a list, so that it is no part of this module
        self.layers = tuple(layers)
        self.matrices = nn.ModuleList(
            nn.Identity() if ours == theirs else nn.Linear(ours, theirs, bias=False) for _ in layers
        )

    def forward(self, inputs: ObjectiveInputs) -> torch.Tensor:
        """Give the error, averaged over tokens (padding left out), dimensions and layers."""
        wanted = self._wanted(inputs)
        tokens = inputs.attention_mask.bool()
        errors = [
            (matrix(ours)[tokens].float() - theirs[tokens].float()).square().mean()
            for matrix, ours, theirs in zip(self.matrices, inputs.hidden_states[1:], wanted, strict=True)
        ]
        return torch.stack(errors).mean()

    @torch.no_grad()
    def _wanted(self, inputs: ObjectiveInputs) -> list[torch.Tensor]:
        (teacher,) = self._teacher
        output: Any = teacher.to(inputs.token_ids.device)(
            input_ids=inputs.token_ids, attention_mask=inputs.attention_mask, output_hidden_states=True
        )
        return [output.hidden_states[layer] for layer in self.layers]
