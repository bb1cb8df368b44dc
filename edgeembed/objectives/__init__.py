"""Distillation objectives, one a file, named after what they do."""

from edgeembed.objectives.base import DistillationLoss, Objective, ObjectiveInputs
from edgeembed.objectives.cosine import cosine
from edgeembed.objectives.hidden_states import HiddenStates
from edgeembed.objectives.kl_divergence import kl
from edgeembed.objectives.mean_absolute import mae
from edgeembed.objectives.mean_squared import mse
from edgeembed.objectives.similarity import similarity, similarity_mae
from edgeembed.objectives.token_embedding import TokenEmbedding

__all__ = [
    "PLAIN_OBJECTIVES",
    "DistillationLoss",
    "HiddenStates",
    "Objective",
    "ObjectiveInputs",
    "TokenEmbedding",
    "cosine",
    "kl",
    "mae",
    "mse",
    "similarity",
    "similarity_mae",
]

PLAIN_OBJECTIVES: dict[str, Objective] = {
    "cosine": cosine,
    "kl": kl,
    "mae": mae,
    "mse": mse,
    "similarity": similarity,
    "similarity_mae": similarity_mae,
}
"""The objectives that need a batch and nothing else, by their name in a recipe."""
