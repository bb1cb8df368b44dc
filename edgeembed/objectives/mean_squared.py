"""Lie where the teacher lies, by squared distance."""

import torch

from edgeembed.objectives.base import ObjectiveInputs


def mse(inputs: ObjectiveInputs) -> torch.Tensor:
    """Give the mean squared error between the student's vectors and the targets, over the batch and the dimensions.

    SimTDE's equation 4. HPD's equation 2 adds up the dimensions instead of averaging: the same with a weight of as many.
    """
    return (inputs.student_raw - inputs.target_raw).square().mean()
