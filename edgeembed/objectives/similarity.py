"""Rank a batch as the teacher ranks it."""

import torch

from edgeembed.objectives.base import ObjectiveInputs


def similarity(inputs: ObjectiveInputs) -> torch.Tensor:
    """Give the mean squared difference of all pairwise cosines in the batch, student's against teacher's.

    The teacher's cosines are those of its full vectors, so that the student also learns of the dimensions that the
    head leaves out (Tung and Mori 2019, "Similarity-preserving knowledge distillation", on cosines). One of SimTDE's
    ablations, over all pairs of a batch.
    """
    return _differences(inputs).square().mean()


def similarity_mae(inputs: ObjectiveInputs) -> torch.Tensor:
    """Give the mean absolute difference instead: another of SimTDE's ablations."""
    return _differences(inputs).abs().mean()


def _differences(inputs: ObjectiveInputs) -> torch.Tensor:
    return inputs.student @ inputs.student.T - inputs.teacher @ inputs.teacher.T
