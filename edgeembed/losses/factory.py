"""Build the loss of a stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import nn

from edgeembed.losses.base import Loss, LossContext, TeacherTargets
from edgeembed.losses.weighted_sum import DistillationLoss
from edgeembed.processes import gather_rows, process_count


def build_loss(
    student: SentenceTransformer,
    losses: Mapping[str, Loss],
    targets: TeacherTargets | None,
    *,
    teacher_name: str = "",
    project_to_teacher: bool = False,
) -> nn.Module:
    """Return the loss of a stage, in the form that `SentenceTransformerTrainer` expects.

    Args:
        student: The student. Its first module is told whether to output hidden states.
        losses: The stage's losses by name, in the order in which they are added up.
        targets: What the student learns from its teacher; None if the stage does not read the teacher's embeddings.
        teacher_name: Name or folder of the teacher.
        project_to_teacher: Whether a learned linear layer projects the student's embeddings to the targets' dimension.

    Returns:
        The only loss, or the weighted sum of losses.

    Raises:
        InputError: If the student or the corpus does not suit a loss.
    """
    # In every stage: one after a stage that compares layers must not go on computing hidden states.
    student[0].output_hidden_states = any(loss.compares_layers for loss in losses.values())
    context = LossContext(student, targets, teacher_name)
    built = {name: loss.build(context) for name, loss in losses.items()}
    if targets is None:
        (single,) = built.values()
        gathers = process_count() > 1 and hasattr(single, "compute_loss_from_embeddings")
        return _GatheredLoss(single) if gathers else single
    width = int(student.get_embedding_dimension())
    return DistillationLoss(
        student,
        targets.vectors,
        targets.projection,
        built,
        {name: loss.weight for name, loss in losses.items()},
        normalized=isinstance(student[-1], Normalize),
        student_projection=nn.Linear(width, targets.dimension, bias=False) if project_to_teacher else None,
    )


class _GatheredLoss(nn.Module):
    """A loss of sentence-transformers on the embeddings of the whole batch, which several processes encode.

    Args:
        loss: The loss.
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, sentence_features: list[dict[str, torch.Tensor]], labels: torch.Tensor | None) -> torch.Tensor:
        """Return the loss of the batch, a float32 scalar."""
        model: Any = self.loss.model
        embeddings = [gather_rows(model(features)["sentence_embedding"]) for features in sentence_features]
        labels = None if labels is None else gather_rows(labels)
        loss: torch.Tensor = self.loss.compute_loss_from_embeddings(embeddings, labels)  # type: ignore[operator]
        return loss
