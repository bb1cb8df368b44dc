"""The loss `smooth_l1`."""

from typing import ClassVar

import torch
from pydantic import Field

from edgeembed.losses.base import LOSSES, Loss, LossInputs


@LOSSES.register("smooth_l1")
class SmoothL1(Loss):
    """Smooth absolute error between the embeddings of student and teacher, which is squared where it is small.

    Attributes:
        beta: Difference below which the error is squared.
    """

    source: ClassVar[str] = "Fast R-CNN (Girshick 2015), equation 3"
    teaches_space: ClassVar[bool] = True

    beta: float = Field(default=0.1, gt=0)

    def compute(self, inputs: LossInputs) -> torch.Tensor:
        """Return the error over batch and dimensions."""
        return torch.nn.functional.smooth_l1_loss(inputs.student_raw, inputs.target_raw, beta=self.beta)
