"""Squared error of sentence embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from edgeembed.losses.base import LOSSES, Loss, LossInputs

if TYPE_CHECKING:
    import torch


@LOSSES.register("mse")
class MSE(Loss):
    """Mean squared error between the embeddings of student and teacher.

    HPD's equation 2 sums over the dimensions instead: use their number as the weight.
    """

    source: ClassVar[str] = "SimTDE (Xie et al. 2023), equation 4"
    teaches_space: ClassVar[bool] = True

    def compute(self, inputs: LossInputs) -> torch.Tensor:
        """Return the error over batch and dimensions."""
        return (inputs.student_raw - inputs.target_raw).square().mean()
