"""Spread over the dimensions as the teacher does."""

import torch
from torch import nn

from edgeembed.objectives.base import ObjectiveInputs


def kl(inputs: ObjectiveInputs) -> torch.Tensor:
    """Give the Kullback-Leibler divergence of the student's vectors from the targets, averaged over the batch.

    Each vector is read as a distribution over its dimensions, by softmax. An ablation of SimTDE's equation 4, which the
    paper names without more.
    """
    ours = nn.functional.log_softmax(inputs.student_raw, dim=1)
    theirs = nn.functional.log_softmax(inputs.target_raw, dim=1)
    return nn.functional.kl_div(ours, theirs, reduction="batchmean", log_target=True)
