"""Lie nearer to the teacher's vector of a sentence than to its vectors of any other."""

import torch
from sentence_transformers.util.distributed import all_gather
from torch import nn
from torch.distributed import get_rank, is_available, is_initialized

from edgeembed.objectives.base import ObjectiveInputs


class ContrastiveDistillation(nn.Module):
    """InfoNCE between the student's vectors and the teacher's (DistilCSE, equations 4 to 6: CKD).

    Negatives are the teacher's vectors of the other sentences of the batch, of all processes' batches where there are
    several, and those of a bank: the teacher's vectors of the batches before, first in, first out. They come from the
    teacher cache, so that a bank costs no teacher pass. The bank is in the checkpoints. Where it reaches back into the
    epoch before, a sentence is no negative of its own; nor is it of its translation in the same batch.

    Args:
        bank_size: Most vectors in the bank; 0 for none.
        dimension: Dimensions of the targets.
        temperature: What cosines are divided by.
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

    def forward(self, inputs: ObjectiveInputs) -> torch.Tensor:
        """Give the loss, averaged over this process's batch, and put the targets of all processes into the bank."""
        targets, rows = _of_all_processes(inputs.target), _of_all_processes(inputs.rows)
        filled, first = int(self.filled), _rank() * len(inputs.target)
        right = torch.arange(first, first + len(inputs.target), device=targets.device)
        candidates = torch.cat([targets, self.bank[:filled]])
        logits = inputs.student @ candidates.T / self.temperature
        same = inputs.rows[:, None] == rows
        same[torch.arange(len(right), device=targets.device), right] = False
        logits[:, : len(targets)][same] = float("-inf")
        # Few places of the bank hold sentences of this batch; comparing all with all would cost as much as the loss.
        again = torch.isin(self.rows[:filled], inputs.rows).nonzero()[:, 0]
        row, place = (inputs.rows[:, None] == self.rows[again]).nonzero(as_tuple=True)
        logits[row, len(targets) + again[place]] = float("-inf")
        self._remember(targets.detach(), rows)
        return nn.functional.cross_entropy(logits, right)

    @torch.no_grad()
    def _remember(self, targets: torch.Tensor, rows: torch.Tensor) -> None:
        size = len(self.bank)
        if not size:
            return
        count = min(size, len(targets))
        places = (int(self.oldest) + torch.arange(count, device=targets.device)) % size
        self.bank[places], self.rows[places] = targets[-count:], rows[-count:]
        # Until the bank is full, the place after the newest is the first empty one, and then that of the oldest.
        self.oldest.fill_((int(self.oldest) + count) % size)
        self.filled.fill_(min(size, int(self.filled) + count))


def _of_all_processes(tensor: torch.Tensor) -> torch.Tensor:
    if not (is_available() and is_initialized()):
        return tensor
    gathered: torch.Tensor = all_gather(tensor.contiguous())
    return gathered


def _rank() -> int:
    return get_rank() if is_available() and is_initialized() else 0
