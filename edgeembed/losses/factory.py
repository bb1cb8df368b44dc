"""Build the loss of a stage from its settings."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_exporters.reduction.pca_head import Projection
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    CosineSimilarityLoss,
    MultipleNegativesRankingLoss,
    TripletLoss,
)
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from torch import nn
from transformers import PreTrainedModel

from edgeembed.losses.base import DistillationLoss, Loss
from edgeembed.losses.contrastive import ContrastiveDistillation
from edgeembed.losses.embedding import TokenEmbedding, cosine, kl, mae, mse, similarity, similarity_mae
from edgeembed.losses.hidden_states import HiddenStates, Patient, teacher_layers
from edgeembed.losses.masked_lm import MaskedLM
from edgeembed.losses.prototypes import PrototypeMse, prototype_scores
from edgeembed.processes import gather_rows, process_count
from edgeembed.recipe.stages import (
    ContrastiveDistillationSettings,
    ContrastiveSettings,
    GoldSimilaritySettings,
    LayerLossSettings,
    LossSettings,
    MaskedLMSettings,
    StageSettings,
    TripletSettings,
)
from edgeembed.students.architectures import encoder_layers

_FUNCTIONS: dict[str, Loss] = {
    "cosine": cosine,
    "kl": kl,
    "mae": mae,
    "mse": mse,
    "similarity": similarity,
    "similarity_mae": similarity_mae,
}


@dataclass(frozen=True)
class TeacherTargets:
    """What a student learns from its teacher.

    Attributes:
        vectors: The teacher's embeddings of the corpus, float16 (sentences, teacher_dim).
        projection: Projection of these to the student's dimension; None if the dimensions are equal.
        token_targets: Target embedding of each of the student's tokens, float32 (vocabulary, hidden size of the
            student's source).
        teacher: The teacher; None if it is not loaded, in which case no loss compares its layers.
        domains: Domain of each sentence, int64 (sentences,).
    """

    vectors: npt.NDArray[np.float16]
    projection: Projection | None
    token_targets: torch.Tensor
    teacher: SentenceTransformer | None
    domains: npt.NDArray[np.int64]

    @property
    def dimension(self) -> int:
        """Dimension of the targets."""
        return int(self.vectors.shape[1] if self.projection is None else self.projection.matrix.shape[1])


def build_loss(
    student: SentenceTransformer,
    stage: StageSettings,
    targets: TeacherTargets | None,
    masked_teacher: PreTrainedModel | None = None,
) -> nn.Module:
    """Return the loss of a stage, in the form that `SentenceTransformerTrainer` expects.

    Without a teacher's embeddings it is one of these:
        - `contrastive`: InfoNCE of pairs, with all other pairs of the batch and their hard negatives as negatives
          (SimCSE, Gao et al. 2021, section 4; HPD, equation 1).
        - `triplet`: max(|a - p| - |a - n| + margin, 0) of anchor, positive and hard negative (Xayn, equation 1).
        - `gold_similarity`: (cos(a, b) - score)^2 of a scored pair (Xayn, figure 2).
        - `masked_lm`: masked language modeling with a teacher's logits.

    Args:
        student: The student. Its first module is told whether to output hidden states.
        stage: The stage.
        targets: What the student learns from its teacher; None if the stage does not read the teacher's embeddings.
        masked_teacher: The teacher as a masked language model; None to learn masked tokens from the text only.

    Returns:
        The loss, or the weighted sum of losses.

    Raises:
        InputError: If the student or the corpus does not suit a loss.
    """
    # In every stage: one after a stage that compares layers must not go on computing hidden states.
    student[0].output_hidden_states = any(isinstance(each, LayerLossSettings) for _, each in stage.losses.items())
    if targets is None:
        return _single_loss(student, stage, masked_teacher)
    losses = {name: _loss(name, settings, student, targets) for name, settings in stage.losses.items()}
    width = int(student.get_embedding_dimension())
    return DistillationLoss(
        student,
        targets.vectors,
        targets.projection,
        losses,
        {name: settings.weight for name, settings in stage.losses.items()},
        normalized=isinstance(student[-1], Normalize),
        student_projection=nn.Linear(width, targets.dimension, bias=False) if stage.project_to_teacher else None,
    )


def _single_loss(
    student: SentenceTransformer, stage: StageSettings, masked_teacher: PreTrainedModel | None
) -> nn.Module:
    """Return a loss that is the only one of its stage and needs no embeddings of a teacher."""
    ((name, settings),) = stage.losses.items()
    loss: nn.Module
    match settings:
        case MaskedLMSettings(hard_label_weight=weight, temperature=temperature):
            loss = MaskedLM(student, masked_teacher, hard_label_weight=weight, temperature=temperature)
        case GoldSimilaritySettings():
            loss = CosineSimilarityLoss(student)
        case TripletSettings(margin=margin):
            loss = TripletLoss(student, triplet_margin=margin)
        case ContrastiveSettings(temperature=temperature):
            loss = MultipleNegativesRankingLoss(student, scale=1 / temperature)
        case _:
            raise InputError(f"the loss {name} needs a teacher's embeddings; expected targets")
    return _GatheredLoss(loss) if process_count() > 1 and not isinstance(loss, MaskedLM) else loss


class _GatheredLoss(nn.Module):
    """A loss of sentence-transformers on the embeddings of the whole batch, which several processes encode.

    Args:
        loss: The loss.
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, sentence_features: list[dict[str, torch.Tensor]], labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of the batch, a float32 scalar; the labels are those of the whole batch."""
        model: Any = self.loss.model
        own = (model(features)["sentence_embedding"] for features in sentence_features)
        embeddings = [gather_rows(each, len(labels)) for each in own]
        loss: torch.Tensor = self.loss.compute_loss_from_embeddings(embeddings, labels)  # type: ignore[operator]
        return loss


def _loss(name: str, settings: LossSettings, student: SentenceTransformer, targets: TeacherTargets) -> Loss:
    if isinstance(settings, ContrastiveDistillationSettings):
        return ContrastiveDistillation(settings.bank_size, targets.dimension, settings.temperature)
    if isinstance(settings, LayerLossSettings):
        return _layer_loss(name, settings, student, targets)
    if name == "token_embedding":
        return TokenEmbedding(student[0].auto_model.get_input_embeddings(), targets.token_targets)
    if name == "prototype_mse":
        return PrototypeMse(prototype_scores(targets.vectors, targets.domains))
    return _FUNCTIONS[name]


def _layer_loss(
    name: str, settings: LayerLossSettings, student: SentenceTransformer, targets: TeacherTargets
) -> HiddenStates | Patient:
    encoder = student[0].auto_model
    if targets.teacher is None:
        raise ValueError(f"the loss {name} compares layers with those of the teacher, which is not loaded")
    # A copy, since the teacher's layers may be cast elsewhere, and the trainer moves modules between devices.
    teacher = copy.deepcopy(targets.teacher[0].auto_model)
    layers = teacher_layers(len(encoder_layers(encoder)), len(encoder_layers(teacher)), settings.teacher_layers)
    widths = (encoder.config.hidden_size, teacher.config.hidden_size)
    if name == "hidden_states":
        return HiddenStates(teacher, layers, widths)
    if len(layers) < 2:
        raise InputError(
            "the loss patient leaves out the last layer, and the student has one; expected student.layers of 2 or more"
        )
    return Patient(teacher, layers[:-1], widths, (_pooling(student), _pooling(targets.teacher)))


def _pooling(model: SentenceTransformer) -> Pooling:
    pooling = next((module for module in model if isinstance(module, Pooling)), None)
    if pooling is None:
        raise InputError("the loss patient compares pooled hidden states; expected models with a Pooling module")
    return copy.deepcopy(pooling)
