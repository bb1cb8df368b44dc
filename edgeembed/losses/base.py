"""What a loss declares, what it is built from, and what it reads of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from edgeembed.registry import Registry
from edgeembed.validation import Settings, check

if TYPE_CHECKING:
    import torch
    from edgeembed_exporters.reduction.pca_head import Projection
    from sentence_transformers import SentenceTransformer

    from edgeembed.corpus.pairs import SentencePairs

Reads: TypeAlias = Literal["teacher embeddings", "labeled pairs", "scored pairs", "text with masked tokens"]


class Loss(Settings):
    """Base of the losses: the fields of a subclass are its settings, in recipes and in Python.

    The first line of its docstring says in the tables of the documentation what the loss compares. In TOML,
    `cosine = 0.5` is short for `cosine = { weight = 0.5 }`.

    Attributes:
        source: Paper, section and equation.
        reads: What a stage with this loss trains on. A loss that does not read the teacher's embeddings is the only one
            of its stage, so that its weight is always 1.
        teaches_space: Whether the loss is smallest where student and target have the same embedding or direction, so
            that the student shares the teacher's embedding space.
        compares_layers: Whether it compares the layers of student and teacher, token by token. The student then outputs
            its hidden states.
        compares_token_tables: Whether it compares the embedding tables of student and teacher.
        compares_domains: Whether it needs sentences of two domains or more.
        compares_pairs: Whether it compares a pair with all others of its batch, which then share no text.
        needs_hard_negatives: Whether its labeled pairs must have hard negatives.
        weight: Factor of the loss in the weighted sum that a stage minimizes.
    """

    expected: ClassVar[str] = "a weight above 0, or a table of settings"
    source: ClassVar[str] = ""
    reads: ClassVar[Reads] = "teacher embeddings"
    teaches_space: ClassVar[bool] = False
    compares_layers: ClassVar[bool] = False
    compares_token_tables: ClassVar[bool] = False
    compares_domains: ClassVar[bool] = False
    compares_pairs: ClassVar[bool] = False
    needs_hard_negatives: ClassVar[bool] = False

    weight: float = Field(default=1.0, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _number_is_weight(cls, value: Any) -> Any:
        return {"weight": value} if isinstance(value, int | float) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _has_no_weight_alone(self) -> Loss:
        alone = self.reads != "teacher embeddings"
        check(not alone or self.weight == 1, "weight", self.weight, "1, since the loss is the only one of its stage")
        return self

    @model_serializer(mode="wrap")
    def _weight_as_number(self, serialize: SerializerFunctionWrapHandler) -> Any:
        return self.weight if set(type(self).model_fields) == {"weight"} else serialize(self)

    def build(self, context: LossContext) -> Any:  # noqa: ARG002  # for subclasses
        """Return the loss of a stage: `compute`, unless a subclass has state or reads more than sentence embeddings.

        Args:
            context: Student and teacher.

        Returns:
            A `BatchLoss`; if it is a module, its parameters and buffers are trained and checkpointed with the student.
            A loss that does not read the teacher's embeddings returns a loss of sentence-transformers instead.

        Raises:
            InputError: If the student or the corpus does not suit the loss.
        """
        return self.compute

    def compute(self, inputs: LossInputs) -> torch.Tensor:
        """Return the mean loss of a batch, a float32 scalar. A subclass has this or a `build` of its own."""
        raise NotImplementedError

    def scores_as_labels(self, pairs: SentencePairs) -> npt.NDArray[np.float32]:
        """Return the scores of pairs as the loss reads them, if it reads scored pairs, float32 (pairs,).

        Raises:
            InputError: If a score is out of range.
        """
        return pairs.scores.astype(np.float32)


LOSSES: Registry[Loss] = Registry("loss", "edgeembed.losses", "losses")
"""The losses by name."""


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


@dataclass(frozen=True)
class LossContext:
    """What a loss is built from.

    Attributes:
        student: The student.
        targets: What it learns from its teacher; None if the stage does not read the teacher's embeddings.
        teacher_name: Name or folder of the teacher, for losses that load it in another form.
    """

    student: SentenceTransformer
    targets: TeacherTargets | None = None
    teacher_name: str = ""

    @property
    def teacher(self) -> TeacherTargets:
        """What the student learns from its teacher, for losses that read its embeddings."""
        if self.targets is None:
            raise ValueError("the loss needs a teacher's embeddings; expected targets")
        return self.targets


@dataclass(frozen=True)
class LossInputs:
    """One batch of student outputs and teacher targets.

    If several processes train, embeddings and rows are those of the whole batch, tokens and hidden states those of the
    rows that this process encodes (`edgeembed.processes`).

    Attributes:
        student: Normalized embeddings of the student, float32 (batch, dim).
        target: Normalized embeddings of the teacher, projected to the student's dimension, float32 (batch, dim).
        teacher: Normalized embeddings of the teacher, float32 (batch, teacher_dim).
        rows: Row of each sentence in the teacher cache, int64 (batch,).
        token_ids: int64 (own_rows, tokens).
        attention_mask: int64 (own_rows, tokens), 1 on tokens and 0 on padding.
        student_raw: Embeddings as the student outputs them, float32 (batch, dim).
        target_raw: Embeddings that the student should output, float32 (batch, dim): normalized only if it ends in a
            Normalize module.
        hidden_states: Token embeddings before the student's first layer and after each layer, float
            (own_rows, tokens, hidden); empty unless a loss reads them.
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


class BatchLoss(Protocol):
    """A function of a batch to minimize."""

    def __call__(self, inputs: LossInputs) -> torch.Tensor:
        """Return the mean loss of a batch, a float32 scalar."""
        ...
