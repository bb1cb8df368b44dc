"""A stage's loss, made of the objectives that its recipe names."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    CosineSimilarityLoss,
    MultipleNegativesRankingLoss,
    TripletLoss,
)
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import nn
from transformers import PreTrainedModel

from edgeembed.objectives.base import DistillationLoss, Objective
from edgeembed.objectives.contrastive_distillation import ContrastiveDistillation
from edgeembed.objectives.cosine import cosine
from edgeembed.objectives.hidden_states import HiddenStates, Patient
from edgeembed.objectives.kl_divergence import kl
from edgeembed.objectives.masked_language import MaskedLanguage
from edgeembed.objectives.mean_absolute import mae
from edgeembed.objectives.mean_squared import mse
from edgeembed.objectives.meta_distillation import MetaDistillation, prototype_scores
from edgeembed.objectives.similarity import similarity, similarity_mae
from edgeembed.objectives.token_embedding import TokenEmbedding
from edgeembed.projection import Projection
from edgeembed.stage_settings import StageSettings
from edgeembed.students.encoders import layers_of

_PLAIN: dict[str, Objective] = {
    "cosine": cosine,
    "kl": kl,
    "mae": mae,
    "mse": mse,
    "similarity": similarity,
    "similarity_mae": similarity_mae,
}


@dataclass(frozen=True)
class Wanted:
    """What a teacher wants of a student.

    Attributes:
        vectors: The teacher's vectors of the corpus, float16 (sentences, teacher_dim).
        projection: The map of those to the student's dimensions; None where they are as many.
        token_targets: Wanted token embeddings, float32 (vocabulary, hidden size of the student's source).
        encoder: The teacher's transformers encoder.
        domains: The domain of each sentence, int64 (sentences,).
    """

    vectors: npt.NDArray[np.float16]
    projection: Projection | None
    token_targets: torch.Tensor
    encoder: PreTrainedModel
    domains: npt.NDArray[np.int64]

    @property
    def dimension(self) -> int:
        """Dimensions of the targets."""
        return int(self.vectors.shape[1] if self.projection is None else self.projection.matrix.shape[1])


_BY_LAYERS: dict[str, type[HiddenStates | Patient]] = {"hidden_states": HiddenStates, "patient": Patient}


def followed_layers(ours: int, theirs: int, which: Literal["last", "spread"]) -> list[int]:
    """Give for each of a student's layers the teacher's layer that it follows, counted from 1.

    Args:
        ours: How many layers the student has.
        theirs: How many the teacher has, no fewer.
        which: "last" for the teacher's last ones; "spread" for every so manieth, the last among them (Sun et al. 2019:
            PKD-Last and PKD-Skip; TinyBERT's map is the latter).
    """
    if which == "last":
        return list(range(theirs - ours + 1, theirs + 1))
    return [round(theirs * number / ours) for number in range(1, ours + 1)]


def stage_loss(
    student: SentenceTransformer,
    stage: StageSettings,
    wanted: Wanted | None,
    masked_teacher: PreTrainedModel | None = None,
) -> nn.Module:
    """Give a stage's loss, as `SentenceTransformerTrainer` takes it.

    Args:
        student: The student.
        stage: The stage.
        wanted: What the teacher wants; None for a stage that does not learn from its vectors.
        masked_teacher: The teacher as a masked language model; None to learn that from the text alone.

    Returns:
        The weighted sum of the stage's objectives. Without a teacher, the cross-entropy of a pair's cosine among those
        with all others of the batch, hard negatives included (Gao et al. 2021, "SimCSE", section 4; HPD, equation 1);
        max(|a - p| - |a - n| + margin, 0) of anchor, positive and hard negative (Xayn, equation 1); or the squared
        difference of a pair's cosine and its score (Xayn, figure 2).
    """
    # Set for every stage: a stage after one that compares layers must not go on computing hidden states.
    student[0].gives_hidden_states = bool(_BY_LAYERS.keys() & stage.objectives.keys())
    if stage.masked:
        return MaskedLanguage(student, masked_teacher, hard_share=stage.hard_share, temperature=stage.logit_temperature)
    if wanted is None:
        return _labelled_loss(student, stage)
    objectives = {name: _objective(name, stage, student, wanted) for name in stage.objectives}
    return DistillationLoss(
        student,
        wanted.vectors,
        wanted.projection,
        objectives,
        stage.objectives,
        normalized=isinstance(student[-1], Normalize),
        matrix=_matrix(student, wanted) if stage.learned_matrix else None,
    )


def _labelled_loss(student: SentenceTransformer, stage: StageSettings) -> nn.Module:
    loss: nn.Module
    if stage.reads_scored:
        loss = CosineSimilarityLoss(student)
    elif stage.reads_triplets:
        loss = TripletLoss(student, triplet_margin=stage.margin)
    else:
        loss = MultipleNegativesRankingLoss(student, scale=1 / stage.temperature)
    return loss


def _matrix(student: SentenceTransformer, wanted: Wanted) -> nn.Linear:
    return nn.Linear(int(student.get_embedding_dimension()), wanted.dimension, bias=False)


def _objective(name: str, stage: StageSettings, student: SentenceTransformer, wanted: Wanted) -> Objective:
    if name == "contrastive_distillation":
        return ContrastiveDistillation(stage.bank_size, wanted.dimension, stage.temperature)
    if name == "token_embedding":
        return TokenEmbedding(student[0].auto_model.get_input_embeddings(), wanted.token_targets)
    if name == "meta":
        return MetaDistillation(prototype_scores(wanted.vectors, wanted.domains))
    if name in _BY_LAYERS:
        encoder = student[0].auto_model
        depths = len(layers_of(encoder)), len(layers_of(wanted.encoder))
        widths = (encoder.config.hidden_size, wanted.encoder.config.hidden_size)
        layers = followed_layers(*depths, stage.followed_layers)
        if name == "patient" and len(layers) < 2:
            raise InputError(
                "the objective patient leaves out the last layer, and the student has one; expected student.layers "
                "of 2 or more"
            )
        # A copy, since the teacher's layers may be cast elsewhere, and the trainer moves what it finds.
        return _BY_LAYERS[name](copy.deepcopy(wanted.encoder), layers[: -1 if name == "patient" else None], widths)
    return _PLAIN[name]
