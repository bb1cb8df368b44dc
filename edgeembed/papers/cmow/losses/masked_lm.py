"""Masked language modeling with a teacher's distribution over tokens."""

from typing import ClassVar

import torch
from pydantic import Field
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import DataCollatorForLanguageModeling, PreTrainedModel

from edgeembed.losses.base import LOSSES, Loss, LossContext, Reads
from edgeembed.losses.soft_cross_entropy import soft_cross_entropy
from edgeembed.models import load_masked_lm
from edgeembed.processes import mean_over_processes

_NOT_MASKED = -100  # label of the collator for tokens that are not predicted


@LOSSES.register("masked_lm")
class MaskedLM(Loss):
    """Masked language modeling with a teacher's distribution over tokens, for students without attention.

    Attributes:
        hard_label_weight: Weight of the cross-entropy with the masked tokens, 0 to 1. The cross-entropy with the
            teacher's distribution has the rest.
        temperature: Divisor of the logits in the teacher's part.
    """

    source: ClassVar[str] = "Cross-architecture distillation using bidirectional CMOW embeddings, sections 2.2 and 3.1"
    reads: ClassVar[Reads] = "text with masked tokens"

    hard_label_weight: float = Field(default=0.5, ge=0, le=1)
    temperature: float = Field(default=1.0, gt=0)

    def build(self, context: LossContext) -> "MaskedLMLoss":
        """Return the loss with a new layer that predicts tokens."""
        with torch.random.fork_rng():  # loading may draw random numbers
            teacher = load_masked_lm(context.teacher_name)
        return MaskedLMLoss(
            context.student, teacher, hard_label_weight=self.hard_label_weight, temperature=self.temperature
        )


class MaskedLMLoss(nn.Module):
    """Masked language modeling with a teacher's logits, for students that output token embeddings.

    General distillation ("Cross-Architecture Distillation Using Bidirectional CMOW Embeddings", sections 2.2 and 3.1):
    w CE(token) + (1 - w) CE(teacher's distribution) for the `hard_label_weight` w, averaged over the predicted tokens.
    As in BERT, 15 % of the tokens are predicted: 80 % of them are masked, 10 % replaced by another and 10 % kept. The
    linear layer that predicts tokens is trained with the student and discarded.

    Args:
        model: The student; its first module has a method `contextual_embeddings`.
        teacher: A masked language model of the same vocabulary; None to learn from the text only.
        hard_label_weight: Weight of the cross-entropy with the masked tokens, 0 to 1: the paper's alpha.
        temperature: Divisor of both models' logits in the teacher's part: the paper's T.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        teacher: PreTrainedModel | None,
        *,
        hard_label_weight: float,
        temperature: float,
    ) -> None:
        super().__init__()
        self.model = model
        self.head = nn.Linear(model[0].contextual_width, len(model[0].tokenizer))
        self.trained = nn.ModuleList([self.head])
        self.hard_label_weight = hard_label_weight if teacher is not None else 1.0
        self.temperature = temperature
        self.collator = DataCollatorForLanguageModeling(model[0].tokenizer)
        self._teacher = (teacher,)  # in a tuple, so that it is not a submodule

    def forward(self, sentence_features: list[dict[str, torch.Tensor]], _labels: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of the predicted tokens, a float32 scalar."""
        (features,) = sentence_features
        token_ids, mask = features["input_ids"], features["attention_mask"]
        masked, tokens = (
            each.to(token_ids.device) for each in self.collator.torch_mask_tokens(token_ids.cpu().clone())
        )
        predicted = tokens != _NOT_MASKED
        vectors = self.model[0].contextual_embeddings(masked, mask)[predicted]
        logits = self.head(vectors)
        hard: torch.Tensor = nn.functional.cross_entropy(logits, tokens[predicted], reduction="sum")
        loss: torch.Tensor = self.hard_label_weight * hard
        (teacher,) = self._teacher
        if teacher is not None and self.hard_label_weight < 1:
            targets = _logits(teacher.to(token_ids.device), masked, mask, predicted)[:, : logits.shape[1]]
            loss = loss + (1 - self.hard_label_weight) * soft_cross_entropy(logits, targets, self.temperature).sum()
        count = int(predicted.sum())
        return mean_over_processes(loss / max(1, count), count)


@torch.no_grad()
def _logits(
    teacher: PreTrainedModel, token_ids: torch.Tensor, mask: torch.Tensor, predicted: torch.Tensor
) -> torch.Tensor:
    """Return the logits of a masked language model for the predicted tokens, float (predicted tokens, vocabulary)."""

    def select_predicted(_layer: nn.Module, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        return (inputs[0][predicted],)

    # The last layer is as wide as the vocabulary: for all tokens of a batch its output would take gigabytes.
    handle = teacher.get_output_embeddings().register_forward_pre_hook(select_predicted)
    try:
        logits: torch.Tensor = teacher(input_ids=token_ids, attention_mask=mask).logits
    finally:
        handle.remove()
    # MobileBERT uses the weights of its last layer without calling it.
    return logits if logits.dim() == predicted.dim() else logits[predicted]
