"""Squared difference of pairwise cosines."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from edgeembed.losses.base import LOSSES, Loss, LossInputs

if TYPE_CHECKING:
    import torch


@LOSSES.register("similarity")
class Similarity(Loss):
    """Mean squared difference of all pairwise cosines of a batch, the student's and the teacher's.

    The teacher's cosines are those of its embeddings before projection, so that the student also learns about the
    dimensions that the head leaves out.
    """

    source: ClassVar[str] = (
        "Similarity-preserving distillation (Tung and Mori 2019), equation 4, on cosines; an ablation of SimTDE"
    )

    def compute(self, inputs: LossInputs) -> torch.Tensor:
        """Return the mean squared difference over all pairs of the batch."""
        return (inputs.student @ inputs.student.T - inputs.teacher @ inputs.teacher.T).square().mean()
