"""Cosine distance of sentence embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from edgeembed.losses.base import LOSSES, Loss, LossInputs

if TYPE_CHECKING:
    import torch


@LOSSES.register("cosine")
class Cosine(Loss):
    """Cosine distance between the embeddings of student and teacher.

    For normalized embeddings it is half the squared distance on the sphere on which rankings are made.
    """

    source: ClassVar[str] = "HPD (Zhao et al. 2022), equation 2, on the unit sphere"
    teaches_space: ClassVar[bool] = True

    def compute(self, inputs: LossInputs) -> torch.Tensor:
        """Return the mean of 1 - cos(student, target) over the batch."""
        return 1 - (inputs.student * inputs.target).sum(dim=1).mean()
