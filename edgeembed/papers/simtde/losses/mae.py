"""Absolute error of sentence embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from edgeembed.losses.base import LOSSES, Loss, LossInputs

if TYPE_CHECKING:
    import torch


@LOSSES.register("mae")
class MAE(Loss):
    """Mean absolute error between the embeddings of student and teacher.

    The paper's own ablation takes that of cosines (`similarity_mae`).
    """

    source: ClassVar[str] = "SimTDE (Xie et al. 2023), equation 4, with the absolute error"
    teaches_space: ClassVar[bool] = True

    def compute(self, inputs: LossInputs) -> torch.Tensor:
        """Return the error over batch and dimensions."""
        return (inputs.student_raw - inputs.target_raw).abs().mean()
