"""Point where the teacher points."""

import torch

from edgeembed.objectives.base import ObjectiveInputs


def cosine(inputs: ObjectiveInputs) -> torch.Tensor:
    """Give one minus the cosine of student and target, averaged over the batch.

    For vectors of unit length this is half the squared distance: HPD's equation 2 on the sphere on which rankings
    are made.
    """
    return 1 - (inputs.student * inputs.target).sum(dim=1).mean()
