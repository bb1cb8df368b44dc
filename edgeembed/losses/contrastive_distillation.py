"""Contrastive distillation with a bank of teacher embeddings."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import nn

from edgeembed.losses.base import LOSSES, Loss, LossContext, LossInputs


@LOSSES.register("contrastive_distillation")
class ContrastiveDistillation(Loss):
    """InfoNCE between the student's embedding of a sentence and the teacher's embeddings of it and of other sentences.

    Attributes:
        temperature: Divisor of the cosines.
        bank_size: Number of teacher embeddings of earlier batches that serve as negatives; `0` for none.
    """

    source: ClassVar[str] = "DistilCSE (Gao et al. 2022), equations 4 to 6"
    teaches_space: ClassVar[bool] = True

    temperature: float = Field(default=0.05, gt=0)
    bank_size: int = Field(default=0, ge=0)

    def build(self, context: LossContext) -> "ContrastiveDistillationLoss":
        """Return the loss with an empty bank."""
        return ContrastiveDistillationLoss(self.bank_size, context.teacher.dimension, self.temperature)


class ContrastiveDistillationLoss(nn.Module):
    """Contrastive distillation with a bank (DistilCSE, equations 4 to 6: CKD).

    The loss of a sentence is -log(exp(cos(s, t) / T) / sum over candidates c of exp(cos(s, c) / T)) for the student's
    embedding s and the teacher's t. Candidates are the teacher's embeddings of the batch, and those of a bank: the
    teacher's embeddings of earlier batches, first in, first out. The bank is filled from the teacher cache, so it costs
    no teacher pass, and it is saved in checkpoints. A sentence is not a negative of itself where the bank reaches back
    into the epoch before, nor of its translation in the same batch.

    Args:
        bank_size: Maximum number of embeddings in the bank; 0 for none.
        dimension: Dimension of the targets.
        temperature: Divisor T of the cosines.
    """

    bank: torch.Tensor
    rows: torch.Tensor
    filled: torch.Tensor
    oldest: torch.Tensor

    def __init__(self, bank_size: int, dimension: int, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        self.register_buffer("bank", torch.zeros(bank_size, dimension))
        self.register_buffer("rows", torch.full((bank_size,), -1, dtype=torch.int64))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))
        self.register_buffer("oldest", torch.zeros((), dtype=torch.int64))

    def forward(self, inputs: LossInputs) -> torch.Tensor:
        """Return the mean loss of the batch, and add its targets to the bank."""
        targets, rows, filled = inputs.target, inputs.rows, int(self.filled)
        labels = torch.arange(len(targets), device=targets.device)
        candidates = torch.cat([targets, self.bank[:filled]])
        logits = inputs.student @ candidates.T / self.temperature
        same = (rows[:, None] == rows).fill_diagonal_(False)
        logits[:, : len(targets)][same] = float("-inf")
        # Few entries of the bank are sentences of this batch; comparing all with all would cost as much as the loss.
        repeated = torch.isin(self.rows[:filled], rows).nonzero()[:, 0]
        row, entry = (rows[:, None] == self.rows[repeated]).nonzero(as_tuple=True)
        logits[row, len(targets) + repeated[entry]] = float("-inf")
        self._add_to_bank(targets.detach(), rows)
        return nn.functional.cross_entropy(logits, labels)

    @torch.no_grad()
    def _add_to_bank(self, targets: torch.Tensor, rows: torch.Tensor) -> None:
        size = len(self.bank)
        if not size:
            return
        count = min(size, len(targets))
        entries = (int(self.oldest) + torch.arange(count, device=targets.device)) % size
        self.bank[entries], self.rows[entries] = targets[-count:], rows[-count:]
        # Until the bank is full, the entry after the newest is the first empty one, and then the oldest.
        self.oldest.fill_((int(self.oldest) + count) % size)
        self.filled.fill_(min(size, int(self.filled) + count))
