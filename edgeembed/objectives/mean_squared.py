"""Lie where the teacher lies, by squared distance."""

import torch

from edgeembed.objectives.base import ObjectiveInputs


def mse(inputs: ObjectiveInputs) -> torch.Tensor:
    """Give the mean squared error of the student's vectors and the targets, over the batch and the dimensions.

    SimTDE's equation 4. HPD's equation 2 adds the dimensions up instead: the same with a weight of as many.
    """
    return (inputs.student_raw - inputs.target_raw).square().mean()
