"""The weighted sum of losses on a teacher's embeddings that a student is trained with."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_exporters.reduction.pca_head import Projection
from torch import nn

from edgeembed.losses.base import BatchLoss, LossInputs
from edgeembed.processes import gather_rows


class DistillationLoss(nn.Module):
    """Weighted sum of losses, in the form that `SentenceTransformerTrainer` expects.

    The label of a sentence is its row in the teacher cache, so that embeddings are read from disk when a batch needs
    them.

    Args:
        model: The student.
        teacher_vectors: The teacher cache, float16 (sentences, teacher_dim).
        projection: Projection of the teacher's embeddings to the student's dimension; None if the student has the
            teacher's dimension.
        losses: Each loss by name.
        weights: Weight of each loss by name.
        normalized: Whether the student normalizes its embeddings, so that its targets are normalized too.
        student_projection: A linear layer that projects the student's embeddings to the dimension of the targets, in
            the loss only (DistilCSE, equation 3: M); None if the dimensions are equal.
    """

    def __init__(
        self,
        model: nn.Module,
        teacher_vectors: npt.NDArray[np.float16],
        projection: Projection | None,
        losses: Mapping[str, BatchLoss],
        weights: Mapping[str, float],
        *,
        normalized: bool = True,
        student_projection: nn.Linear | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.teacher_vectors = teacher_vectors
        self.projection = projection
        self.losses = dict(losses)
        # Losses that have parameters or buffers of their own are trained and checkpointed with the student.
        modules = [each for each in [student_projection, *losses.values()] if isinstance(each, nn.Module)]
        self.trained = nn.ModuleList(modules)
        self.student_projection = student_projection
        self.weights = dict(weights)
        self.normalized = normalized

    def forward(
        self, sentence_features: list[dict[str, torch.Tensor]], labels: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Return the weighted value of each loss; the trainer adds them up and logs each.

        Args:
            sentence_features: Tokens of the sentences that this process encodes, in a list of one.
            labels: Row of each of these in the teacher cache, int64 (sentences,).

        Returns:
            A float32 scalar by name.
        """
        (features,) = sentence_features
        labels = gather_rows(labels)
        teacher = torch.from_numpy(np.asarray(self.teacher_vectors[labels.cpu().numpy()], dtype=np.float32))
        output: dict[str, Any] = self.model(features)
        student = output["sentence_embedding"]
        student = (student if self.student_projection is None else self.student_projection(student)).float()
        student = gather_rows(student)
        target = self._project(teacher).to(student.device)
        unit_target = nn.functional.normalize(target)
        inputs = LossInputs(
            student=nn.functional.normalize(student),
            target=unit_target,
            teacher=nn.functional.normalize(teacher).to(student.device),
            rows=labels.to(student.device),
            token_ids=features["input_ids"],
            attention_mask=features["attention_mask"],
            student_raw=student,
            target_raw=unit_target if self.normalized else target,
            hidden_states=tuple(output.get("all_layer_embeddings", ())),
        )
        return {name: self.weights[name] * loss(inputs) for name, loss in self.losses.items()}

    def _project(self, teacher: torch.Tensor) -> torch.Tensor:
        if self.projection is None:
            return teacher
        return (teacher - torch.from_numpy(self.projection.mean)) @ torch.from_numpy(self.projection.matrix)
