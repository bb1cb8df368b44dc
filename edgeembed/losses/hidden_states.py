"""Squared error of hidden states, layer by layer."""

from typing import ClassVar

import torch

from edgeembed.losses.base import LOSSES, LossContext, LossInputs
from edgeembed.losses.layer_loss import LayerLoss, LayerLossModule
from edgeembed.processes import mean_over_processes


@LOSSES.register("hidden_states")
class HiddenStates(LayerLoss):
    """Mean squared error between the hidden states of student and teacher; learned linear layers adapt the width."""

    source: ClassVar[str] = "TinyBERT (Jiao et al. 2020), equation 8; SimTDE (Xie et al. 2023), section 4.3"

    def build(self, context: LossContext) -> "HiddenStatesLoss":
        """Return the loss with its linear layers."""
        return HiddenStatesLoss(*self.compared(context))


class HiddenStatesLoss(LayerLossModule):
    """Mean squared error between hidden states of student and teacher.

    SimTDE's ablation "+ hidden states distillation" (Xie et al. 2023) and, with learned linear layers between different
    widths, its baseline LMX-KD, after TinyBERT's layer distillation (Jiao et al. 2020, equation 8).
    """

    def forward(self, inputs: LossInputs) -> torch.Tensor:
        """Return the error over tokens without padding, dimensions and layers, a float32 scalar."""
        tokens = inputs.attention_mask.bool()
        errors = [
            (matrix(student).float() - teacher.float())[tokens].square().mean()
            for matrix, student, teacher in self.pairs_of_layers(inputs)
        ]
        return mean_over_processes(torch.stack(errors).mean(), int(tokens.sum()))
