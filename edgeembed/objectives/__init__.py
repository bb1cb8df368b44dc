"""Distillation objectives, one a file, named after what they do."""

from collections.abc import Callable

import torch
from torch import nn

from edgeembed.objectives.base import DistillationLoss, Objective, ObjectiveInputs
from edgeembed.objectives.cosine import cosine
from edgeembed.objectives.similarity import similarity
from edgeembed.objectives.token_embedding import TokenEmbedding

__all__ = [
    "OBJECTIVES",
    "DistillationLoss",
    "Objective",
    "ObjectiveInputs",
    "TokenEmbedding",
    "cosine",
    "similarity",
]

OBJECTIVES: dict[str, Callable[[nn.Module, torch.Tensor], Objective]] = {
    "cosine": lambda _embedding, _targets: cosine,
    "similarity": lambda _embedding, _targets: similarity,
    "token_embedding": TokenEmbedding,
}
"""Each objective by its name in a recipe: the student's input embedding and the wanted rows in, the objective out."""
