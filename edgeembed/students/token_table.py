"""The embedding table of a CMOW student."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from edgeembed_runtime.cmow.packing import max_level
from torch import nn

_STEPS = {2: 1.248, 4: 0.420}  # in mean absolute values, which are 0.798 standard deviations
_MIN_MEAN = 1e-8  # of a row of zeros


class TokenTable(nn.Module):
    """Embedding table, optionally factorized into a narrow table and a basis.

    The tables make up nearly all of a student's size, so their rank decides it.

    Args:
        vocabulary_size: Number of rows.
        width: Width of a row.
        rank: Width of the stored factors; 0 for a full table.
        std: Initial standard deviation of the rows.
        bits: Bits per value of the stored rows, 2 or 4; 0 for float32.
    """

    row_of_token: torch.Tensor | None

    def __init__(self, vocabulary_size: int, width: int, rank: int, std: float, bits: int = 0) -> None:
        super().__init__()
        self.width, self.rank, self.bits = width, rank, bits
        self.register_buffer("row_of_token", None, persistent=False)
        self.weight = nn.Parameter(torch.empty(vocabulary_size, rank or width))
        self.basis = nn.Parameter(torch.empty(rank, width)) if rank else None
        if self.basis is None:
            nn.init.normal_(self.weight, std=std)
        else:
            # The same scale for both factors: a step of Adam then moves rows no faster than those of a full table.
            factor_std = (std / rank**0.5) ** 0.5
            nn.init.normal_(self.weight, std=factor_std)
            nn.init.normal_(self.basis, std=factor_std)

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of token ids: int64 of any shape (...) -> float32 (..., width)."""
        positions = token_ids if self.row_of_token is None else self.row_of_token[token_ids]
        rows = nn.functional.embedding(positions, self.values())
        return rows if self.basis is None else rows @ self.basis

    @contextmanager
    def narrowed(self, token_ids: torch.Tensor) -> Iterator[None]:
        """Hold the rows of some tokens alone within the context, and put them back after it.

        A step of training takes time for each row of a table, read or not. A row that no text reads has no gradient,
        so Adam without weight decay leaves it as it is: without these rows the result is the same.

        Args:
            token_ids: int64 (tokens,), distinct; no other tokens can be looked up within the context.
        """
        full = self.weight
        self.row_of_token = torch.full((len(full),), -1, device=full.device)
        self.row_of_token[token_ids] = torch.arange(len(token_ids), device=full.device)
        self.weight = nn.Parameter(full.detach()[token_ids], requires_grad=full.requires_grad)
        try:
            yield
        finally:
            with torch.no_grad():
                full[token_ids] = self.weight.to(full.device)
            self.weight, self.row_of_token = full, None

    def values(self) -> torch.Tensor:
        """Return the stored rows as the student uses them, float32 (vocabulary, rank or width).

        Rows of few bits are rounded to the nearest level; the gradient passes as if they were not (straight-through
        estimator, Bengio et al. 2013).
        """
        if not self.bits:
            return self.weight
        with torch.no_grad():
            scale, limit = self.scale()[:, None], max_level(self.bits)
            # Levels lie halfway between integers: -1.5, -0.5, 0.5 and 1.5 for two bits.
            levels = (self.weight / scale).floor_().add_(0.5).clamp_(-limit, limit)
            change = levels.mul_(scale).sub_(self.weight)
        return self.weight + change

    @torch.no_grad()
    def scale(self) -> torch.Tensor:
        """Return the distance between two levels for each row, float32 (vocabulary,).

        It is the best one for Gaussian values (Max 1960, "Quantizing for minimum distortion", table II).
        """
        return self.weight.abs().mean(dim=1).clamp_min(_MIN_MEAN) * _STEPS[self.bits]
