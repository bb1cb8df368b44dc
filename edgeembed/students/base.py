"""What a kind of student declares, and what its first module is built from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from edgeembed.registry import Registry
from edgeembed.validation import Settings

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedTokenizerBase

    from edgeembed.students.settings import StudentSettings


class StudentKind(Settings):
    """Base of the kinds of students: the fields of a subclass are its own settings, `student.shape` in recipes.

    Attributes:
        outputs_tokens: Whether the first module outputs token embeddings, which a pooling and a head of the recipe
            follow. Otherwise it outputs sentence embeddings; it has no layers, and its own linear head if there is one.
        predicts_tokens: Whether the first module has a method `contextual_embeddings`, so that it can learn masked
            language modeling.
    """

    outputs_tokens: ClassVar[bool] = False
    predicts_tokens: ClassVar[bool] = False

    @abstractmethod
    def width(self, settings: StudentSettings, source: SentenceTransformer, head_dim: int) -> int:
        """Return the width of the first module's output, after checking, before any work, that it can be built.

        Args:
            settings: The settings that all kinds share.
            source: The model that the student is initialized from, usually the teacher.
            head_dim: Dimension of the linear head of a module that outputs sentence embeddings; 0 for none.

        Raises:
            InputError: If the source does not suit the settings.
        """

    @abstractmethod
    def build(self, context: StudentContext) -> Any:
        """Return the first module, initialized: a module of sentence-transformers, a `TokenizerModule` for example."""


STUDENTS: Registry[StudentKind] = Registry("student", "edgeembed.students.kinds", "students")
"""The kinds of students by the name that `student.architecture` has in recipes."""


@dataclass(frozen=True)
class StudentContext:
    """What the first module of a student is built from.

    Attributes:
        settings: The settings that all kinds share.
        source: The model that the student is initialized from, usually the teacher.
        tokenizer: The student's tokenizer.
        token_targets: Target embedding of each token, float32 (vocabulary, hidden size of the source); (vocabulary, 0)
            if the recipe uses none.
        token_weights: Weight of each token in a factorization of the targets, float32 (vocabulary,).
        sentences: The training text.
        head_dim: Dimension of the linear head of a module that outputs sentence embeddings; 0 for none.
    """

    settings: StudentSettings
    source: SentenceTransformer
    tokenizer: PreTrainedTokenizerBase
    token_targets: torch.Tensor
    token_weights: torch.Tensor
    sentences: Sequence[str]
    head_dim: int
