"""Go the teacher's way, layer by layer."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from edgeembed.objectives.base import ObjectiveInputs


class _Layers(nn.Module):
    """Some of a student's layers beside those of its teacher that they are to follow.

    Args:
        teacher: The teacher's encoder; it must know the student's tokens. It is run without gradients, and never saved.
        layers: For each of the student's layers from the first on the teacher's layer that it is to follow, counted
            from 1; where there are fewer than it has, its last ones follow none.
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

    def _pairs(self, inputs: ObjectiveInputs) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Give the student's and the teacher's states layer by layer, float32 (batch, tokens, teacher's width)."""
        wanted = self._wanted(inputs)
        for matrix, ours, theirs in zip(self.matrices, inputs.hidden_states[1:], wanted, strict=False):
            yield matrix(ours).float(), theirs.float()

    @torch.no_grad()
    def _wanted(self, inputs: ObjectiveInputs) -> list[torch.Tensor]:
        (teacher,) = self._teacher
        output: Any = teacher.to(inputs.token_ids.device)(
            input_ids=inputs.token_ids, attention_mask=inputs.attention_mask, output_hidden_states=True
        )
        return [output.hidden_states[layer] for layer in self.layers]


class HiddenStates(_Layers):
    """Mean squared error between the student's layers and some of the teacher's.

    SimTDE's ablation ("+ hidden states distillation": the teacher's last layers) and, with learnable matrices between
    unlike widths, its baseline LMX-KD, after TinyBERT's layer-to-layer distillation (Jiao et al. 2020, equation 8).
    """

    def forward(self, inputs: ObjectiveInputs) -> torch.Tensor:
        """Give the error, averaged over tokens (padding left out), dimensions and layers."""
        tokens = inputs.attention_mask.bool()
        errors = [(ours[tokens] - theirs[tokens]).square().mean() for ours, theirs in self._pairs(inputs)]
        return torch.stack(errors).mean()


class Patient(_Layers):
    """Squared distance between the directions of the first token's states, layer by layer.

    Patient knowledge distillation (Sun et al. 2019, equation 7), where the first token stands for the sentence; its
    last layer is left to the objective on sentence embeddings, as there to the one on predictions.
    """

    def forward(self, inputs: ObjectiveInputs) -> torch.Tensor:
        """Give the distance, averaged over the batch and the layers."""
        distances = [
            (nn.functional.normalize(ours[:, 0]) - nn.functional.normalize(theirs[:, 0])).square().sum(dim=1).mean()
            for ours, theirs in self._pairs(inputs)
        ]
        return torch.stack(distances).mean()
