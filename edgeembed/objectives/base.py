"""What every objective is given, and the loss that adds them up."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from edgeembed.projection import Projection


@dataclass(frozen=True)
class ObjectiveInputs:
    """One batch, as the objectives see it.

    Attributes:
        student: The student's vectors, float32 (batch, dim), of unit length.
        target: The teacher's vectors through the head's projection, float32 (batch, dim), of unit length.
        teacher: The teacher's vectors, float32 (batch, teacher_dim), of unit length.
        rows: The sentences' rows in the teacher cache, int64 (batch,).
        token_ids: int64 (batch, tokens).
        attention_mask: int64 (batch, tokens), 1 on tokens and 0 on padding.
        student_raw: The student's vectors as it gives them, float32 (batch, dim).
        target_raw: The targets as the student is to give them: of unit length only if it ends in a Normalize module.
        hidden_states: The student's token vectors before its first layer and after each, float (batch, tokens, hidden);
            empty unless an objective asks for them.
    """

    student: torch.Tensor
    target: torch.Tensor
    teacher: torch.Tensor
    rows: torch.Tensor
    token_ids: torch.Tensor
    attention_mask: torch.Tensor
    student_raw: torch.Tensor
    target_raw: torch.Tensor
    hidden_states: tuple[torch.Tensor, ...] = ()


class Objective(Protocol):
    """Something to minimise, averaged over a batch."""

    def __call__(self, inputs: ObjectiveInputs) -> torch.Tensor:
        """Give the objective's value, a float32 scalar."""
        ...


class DistillationLoss(nn.Module):
    """The weighted sum of a stage's objectives, as `SentenceTransformerTrainer` takes it.

    The label of a sentence is its row in the teacher cache, so vectors are read from disk when a batch needs them.

    Args:
        model: The student.
        teacher_vectors: The teacher cache, float16 (sentences, teacher_dim).
        projection: The head's target; `None` where the student keeps the teacher's dimension.
        objectives: Each objective by name.
        weights: Each objective's weight by name.
        normalized: Whether the student's vectors have unit length, so that its targets must.
        matrix: A learned map of the student's vectors to the targets' dimensions, for the loss alone (DistilCSE,
            equation 3: M); `None` where they are as many.
    """

    def __init__(
        self,
        model: nn.Module,
        teacher_vectors: npt.NDArray[np.float16],
        projection: Projection | None,
        objectives: Mapping[str, Objective],
        weights: Mapping[str, float],
        *,
        normalized: bool = True,
        matrix: nn.Linear | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.teacher_vectors = teacher_vectors
        self.projection = projection
        self.objectives = dict(objectives)
        # An objective with weights of its own is trained with the student.
        self.trained = nn.ModuleList(each for each in [matrix, *objectives.values()] if isinstance(each, nn.Module))
        self.matrix = matrix
        self.weights = dict(weights)
        self.normalized = normalized

    def forward(
        self, sentence_features: list[dict[str, torch.Tensor]], labels: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Give each objective's weighted value for a batch; the trainer adds and logs them."""
        (features,) = sentence_features
        teacher = torch.from_numpy(np.asarray(self.teacher_vectors[labels.cpu().numpy()], dtype=np.float32))
        output: dict[str, Any] = self.model(features)
        student = output["sentence_embedding"]
        student = (student if self.matrix is None else self.matrix(student)).float()
        target = self._project(teacher).to(student.device)
        unit_target = nn.functional.normalize(target)
        inputs = ObjectiveInputs(
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
        return {name: self.weights[name] * objective(inputs) for name, objective in self.objectives.items()}

    def _project(self, teacher: torch.Tensor) -> torch.Tensor:
        if self.projection is None:
            return teacher
        return (teacher - torch.from_numpy(self.projection.mean)) @ torch.from_numpy(self.projection.matrix)
