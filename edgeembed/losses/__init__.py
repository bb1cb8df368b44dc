"""Loss functions between the embeddings, tokens and layers of student and teacher."""

from edgeembed.losses.base import DistillationLoss, Loss, LossInputs
from edgeembed.losses.contrastive import ContrastiveDistillation
from edgeembed.losses.embedding import TokenEmbedding, cosine, kl, mae, mse, similarity, similarity_mae
from edgeembed.losses.factory import TeacherTargets, build_loss
from edgeembed.losses.hidden_states import HiddenStates, Patient

__all__ = [
    "ContrastiveDistillation",
    "DistillationLoss",
    "HiddenStates",
    "Loss",
    "LossInputs",
    "Patient",
    "TeacherTargets",
    "TokenEmbedding",
    "build_loss",
    "cosine",
    "kl",
    "mae",
    "mse",
    "similarity",
    "similarity_mae",
]
