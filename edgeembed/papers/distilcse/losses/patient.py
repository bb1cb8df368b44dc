"""Distance of pooled hidden states, layer by layer."""

import copy
from collections.abc import Sequence
from typing import ClassVar

import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from edgeembed.losses.base import LOSSES, LossContext, LossInputs
from edgeembed.losses.layer_loss import LayerLoss, LayerLossModule
from edgeembed.processes import mean_over_processes


@LOSSES.register("patient")
class Patient(LayerLoss):
    """Squared distance between the normalized, pooled hidden states of student and teacher, without the last layer."""

    source: ClassVar[str] = "Patient knowledge distillation (Sun et al. 2019), equation 7"

    def build(self, context: LossContext) -> "PatientLoss":
        """Return the loss with its linear layers."""
        teacher, layers, widths = self.compared(context)
        if len(layers) < 2:
            raise InputError(
                "the loss patient leaves out the last layer, and the student has one; expected student.layers of 2 or "
                "more"
            )
        poolings = _pooling(context.student), _pooling(self.teacher(context))
        return PatientLoss(teacher, layers[:-1], widths, poolings)


class PatientLoss(LayerLossModule):
    """Squared distance between the normalized hidden states that represent the sentence.

    Patient knowledge distillation (Sun et al. 2019, equation 7). There the hidden state of the first token represents
    the sentence, since the classifier reads it; here each model's hidden states are pooled as its last layer is. The
    last layer is left to the loss on sentence embeddings, as the paper leaves it to the one on predictions.

    Args:
        teacher: As for `LayerLossModule`.
        layers: As for `LayerLossModule`.
        widths: As for `LayerLossModule`.
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
        for matrix, student, teacher in self.pairs_of_layers(inputs):
            ours = matrix(_pooled(student_pooling, student, inputs)).float()
            theirs = _pooled(teacher_pooling, teacher, inputs).float()
            difference = nn.functional.normalize(ours) - nn.functional.normalize(theirs)
            distances.append(difference.square().sum(dim=1).mean())
        return mean_over_processes(torch.stack(distances).mean(), len(inputs.token_ids))


def _pooled(pooling: Pooling, states: torch.Tensor, inputs: LossInputs) -> torch.Tensor:
    """Return pooled hidden states, float (batch, hidden size)."""
    features = {"token_embeddings": states, "attention_mask": inputs.attention_mask}
    pooled: torch.Tensor = pooling(features)["sentence_embedding"]
    return pooled


def _pooling(model: SentenceTransformer) -> Pooling:
    pooling = next((module for module in model if isinstance(module, Pooling)), None)
    if pooling is None:
        raise InputError("the loss patient compares pooled hidden states; expected models with a Pooling module")
    return copy.deepcopy(pooling)
