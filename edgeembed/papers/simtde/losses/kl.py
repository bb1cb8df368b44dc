"""Kullback-Leibler divergence of sentence embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from torch import nn

from edgeembed.losses.base import LOSSES, Loss, LossInputs

if TYPE_CHECKING:
    import torch


@LOSSES.register("kl")
class KL(Loss):
    """Kullback-Leibler divergence between the softmaxed embeddings of student and teacher.

    The softmax turns the dimensions of an embedding into a distribution. The paper does not say what the divergence is
    taken of.
    """

    source: ClassVar[str] = "SimTDE (Xie et al. 2023), section 4.3: an ablation of equation 4"

    def compute(self, inputs: LossInputs) -> torch.Tensor:
        """Return the mean of KL(softmax(target) || softmax(student)) over the batch."""
        student = nn.functional.log_softmax(inputs.student_raw, dim=1)
        target = nn.functional.log_softmax(inputs.target_raw, dim=1)
        return nn.functional.kl_div(student, target, reduction="batchmean", log_target=True)
