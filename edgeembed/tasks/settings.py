"""How a classifier is made and learns."""

from dataclasses import dataclass
from typing import Literal

from edgeembed_runtime.storage.folder_kind import FolderKind

from edgeembed.settings import require

TASK_FILE = "edgeembed_task.json"
TASK_FOLDER = FolderKind(TASK_FILE, ("settings", "names"))

ClassifierKind = Literal["linear", "mlp", "cnn", "bilstm"]
Encoding = Literal["diffcat", "joint"]


@dataclass(frozen=True)
class TaskSettings:
    """How a classifier is made and learns ("Cross-architecture distillation using bidirectional CMOW embeddings").

    Attributes:
        classifier: `linear` and `mlp` read the sentence's vector, `cnn` its matrices, `bilstm` those of its tokens
            (appendix A).
        encoding: Of two texts: `diffcat` encodes each by itself (section 2.3), `joint` both as one, as BERT does.
        hard_share: Share of the labels' own loss beside a teacher's, which is the rest: the paper's alpha.
        temperature: What logits are divided by in the teacher's part: the paper's T.
        epochs: Most passes over the training part.
        patience: Passes without a better measure on the development part before the end.
        batch_size: Examples a step.
        learning_rate: AdamW's for the encoder, which has been trained before; it falls linearly to 0.
        classifier_learning_rate: AdamW's for the classifier, which starts at random and so needs larger steps; it falls
            linearly to 0. At the encoder's rate, few or hard examples end before the classifier tells classes apart.
        trains_encoder: Whether the encoder learns as well as the classifier.
        seed: Decides every draw.
    """

    classifier: ClassifierKind = "mlp"
    encoding: Encoding = "diffcat"
    hard_share: float = 0.5
    temperature: float = 1.0
    epochs: int = 20
    patience: int = 5
    batch_size: int = 32
    learning_rate: float = 1e-4
    classifier_learning_rate: float = 1e-3
    trains_encoder: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse impossible sizes."""
        require(0 <= self.hard_share <= 1, "hard_share", self.hard_share, "0 to 1")
        for name in ("temperature", "learning_rate", "classifier_learning_rate"):
            require(getattr(self, name) > 0, name, getattr(self, name), "more than 0")
        for name in ("epochs", "patience", "batch_size"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
