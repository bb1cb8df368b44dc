"""Say which tokens were masked, as the text has it and as the teacher would."""

import torch
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import DataCollatorForLanguageModeling, PreTrainedModel

_NOTHING = -100  # what the collator marks tokens with that were not masked


class MaskedLanguage(nn.Module):
    """Masked language modelling with a teacher's logits, for students that give vectors of tokens.

    General distillation ("Cross-architecture distillation using bidirectional CMOW embeddings", sections 2.2 and 3.1):
    `hard_share` of the loss is the cross-entropy of the token that was there, the rest that of the teacher's
    distribution. Of 15 % of the tokens, 80 % are masked, 10 % replaced by another and 10 % left, as BERT has it. The
    linear layer that guesses tokens learns with the student, and stays behind.

    Args:
        model: The student; its first module has `token_vectors`.
        teacher: A masked language model of the same vocabulary; None to learn from the text alone.
        hard_share: Share of the text's own loss, 0 to 1: the paper's alpha.
        temperature: What both models' logits are divided by in the teacher's loss: the paper's T.
    """

    def __init__(
        self, model: SentenceTransformer, teacher: PreTrainedModel | None, *, hard_share: float, temperature: float
    ) -> None:
        super().__init__()
        self.model = model
        self.head = nn.Linear(model[0].token_width, len(model[0].tokenizer))
        self.trained = nn.ModuleList([self.head])
        self.hard_share = hard_share if teacher is not None else 1.0
        self.temperature = temperature
        self.collator = DataCollatorForLanguageModeling(model[0].tokenizer)
        # Beside the modules: a teacher is neither trained nor saved.
        self._teacher = (teacher,)

    def forward(self, sentence_features: list[dict[str, torch.Tensor]], _labels: torch.Tensor) -> torch.Tensor:
        """Give the loss, averaged over the tokens that were chosen."""
        (features,) = sentence_features
        token_ids, mask = features["input_ids"], features["attention_mask"]
        seen, wanted = (part.to(token_ids.device) for part in self.collator.torch_mask_tokens(token_ids.cpu().clone()))
        chosen = wanted != _NOTHING
        vectors = self.model[0].token_vectors(seen, mask)[chosen]
        logits = self.head(vectors)
        loss: torch.Tensor = self.hard_share * nn.functional.cross_entropy(logits, wanted[chosen], reduction="sum")
        (teacher,) = self._teacher
        if teacher is not None and self.hard_share < 1:
            theirs = teacher_logits(teacher.to(token_ids.device), seen, mask)[chosen][:, : logits.shape[1]]
            loss = loss + (1 - self.hard_share) * soft_cross_entropy(logits, theirs, self.temperature).sum()
        return loss / max(1, int(chosen.sum()))


@torch.no_grad()
def teacher_logits(teacher: PreTrainedModel, token_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Give a masked language model's logits, float (batch, tokens, vocabulary)."""
    logits: torch.Tensor = teacher(input_ids=token_ids, attention_mask=mask).logits
    return logits


def soft_cross_entropy(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Give the cross-entropy of the teacher's distribution and the student's, row by row (section 2.2).

    Args:
        student: Logits, float (rows, classes).
        teacher: Logits, float (rows, classes).
        temperature: What both are divided by.
    """
    wanted = nn.functional.softmax(teacher / temperature, dim=-1)
    return -(wanted * nn.functional.log_softmax(student / temperature, dim=-1)).sum(dim=-1)
