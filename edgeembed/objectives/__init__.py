"""Distillation objectives, one a file, named after what they do."""

from edgeembed.objectives.base import DistillationLoss, Objective, ObjectiveInputs
from edgeembed.objectives.choosing import Wanted, stage_loss
from edgeembed.objectives.contrastive_distillation import ContrastiveDistillation
from edgeembed.objectives.cosine import cosine
from edgeembed.objectives.hidden_states import HiddenStates, Patient
from edgeembed.objectives.kl_divergence import kl
from edgeembed.objectives.mean_absolute import mae
from edgeembed.objectives.mean_squared import mse
from edgeembed.objectives.similarity import similarity, similarity_mae
from edgeembed.objectives.token_embedding import TokenEmbedding

__all__ = [
    "ContrastiveDistillation",
    "DistillationLoss",
    "HiddenStates",
    "Objective",
    "ObjectiveInputs",
    "Patient",
    "TokenEmbedding",
    "Wanted",
    "cosine",
    "kl",
    "mae",
    "mse",
    "similarity",
    "similarity_mae",
    "stage_loss",
]
