"""Tables of what a token is: a vector, or a matrix beside the identity; whole, or of low rank."""

import torch
from torch import nn


class TokenTable(nn.Module):
    """Rows of numbers for tokens.

    Args:
        vocabulary_size: Number of rows.
        width: Numbers a row.
        rank: Width of the factors that a basis widens to rows; 0 for a table as it is. Tables make up nearly all of a
            student's size, and its rank decides theirs.
        std: Standard deviation of the numbers at first.
    """

    def __init__(self, vocabulary_size: int, width: int, rank: int, std: float) -> None:
        super().__init__()
        self.width, self.rank = width, rank
        self.weight = nn.Parameter(torch.empty(vocabulary_size, rank or width))
        self.basis = nn.Parameter(torch.empty(rank, width)) if rank else None
        if self.basis is None:
            nn.init.normal_(self.weight, std=std)
        else:
            # Both alike, so that a step of Adam moves rows no faster than those of a whole table.
            factor_std = (std / rank**0.5) ** 0.5
            nn.init.normal_(self.weight, std=factor_std)
            nn.init.normal_(self.basis, std=factor_std)

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Give float32 rows (..., width) of int64 ids of any shape."""
        rows = nn.functional.embedding(token_ids, self.weight)
        return rows if self.basis is None else rows @ self.basis
