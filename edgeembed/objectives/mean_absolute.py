"""Lie where the teacher lies, by absolute distance."""

import torch

from edgeembed.objectives.base import ObjectiveInputs


def mae(inputs: ObjectiveInputs) -> torch.Tensor:
    """Give the mean absolute error between the student's vectors and the targets, over the batch and the dimensions.

    An ablation of SimTDE's equation 4.
    """
    return (inputs.student_raw - inputs.target_raw).abs().mean()
