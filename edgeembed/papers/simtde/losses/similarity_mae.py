"""Absolute difference of pairwise cosines."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from edgeembed.losses.base import LOSSES, Loss, LossInputs

if TYPE_CHECKING:
    import torch


@LOSSES.register("similarity_mae")
class SimilarityMAE(Loss):
    """Mean absolute difference of all pairwise cosines of a batch, the student's and the teacher's.

    The paper does not say which pairs it compares.
    """

    source: ClassVar[str] = "SimTDE (Xie et al. 2023), section 4.3"

    def compute(self, inputs: LossInputs) -> torch.Tensor:
        """Return the mean absolute difference over all pairs of the batch."""
        return (inputs.student @ inputs.student.T - inputs.teacher @ inputs.teacher.T).abs().mean()
