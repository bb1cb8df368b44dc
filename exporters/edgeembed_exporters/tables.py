"""Embedding tables as a bundle needs them: no longer than used, int8 where that is asked for."""

import torch
from torch import nn
from torch.nn import functional

from edgeembed_exporters.source import first_position, position_tables

# Smaller tables (MPNet's relative positions, say) save next to nothing and steer every layer.
_SMALLEST_QUANTIZED = 16_384


class Int8Embedding(nn.Module):
    """A table of int8 rows, one float32 scale a row.

    One scale a row bounds the error by 1/254 of the row's largest number, however long other rows are. With
    all tables of all-MiniLM-L6-v2 so, the worst cosine of 400 sentences was 0.9997.

    Args:
        table: float (rows, dim).
    """

    rows: torch.Tensor
    scales: torch.Tensor

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        scales = table.float().abs().amax(dim=1, keepdim=True) / 127
        scales[scales == 0] = 1
        self.register_buffer("rows", torch.round(table.float() / scales).to(torch.int8))
        self.register_buffer("scales", scales)  # (rows, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Give float32 rows of shape (..., dim) for int64 ids of any shape."""
        return functional.embedding(ids, self.rows).float() * functional.embedding(ids, self.scales)


class ConstantRow(nn.Module):
    """A table of which only one row is ever asked for.

    Args:
        row: float (dim,).
    """

    row: torch.Tensor

    def __init__(self, row: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("row", row.clone())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Give that row, to be broadcast, whatever the ids (batch, tokens) are."""
        return self.row.expand(*ids.shape, -1)


def cut_positions(encoder: nn.Module, max_seq_length: int) -> None:
    """Drop, in place, positions that no token of a text within the limit has."""
    for table in position_tables(encoder):
        rows = min(table.num_embeddings, max_seq_length + first_position(table))
        table.weight = nn.Parameter(table.weight.detach()[:rows].clone(), requires_grad=False)
        table.num_embeddings = rows
        if hasattr(encoder.config, "max_position_embeddings"):
            encoder.config.max_position_embeddings = rows


def fold_token_types(encoder: nn.Module) -> None:
    """Put, in place, a constant where token types are looked up: a single text has only type 0."""
    for name, module in _tables(encoder):
        if name.rpartition(".")[2] == "token_type_embeddings":
            _replace(encoder, name, ConstantRow(module.weight.detach()[0]))


def quantise_tables(encoder: nn.Module) -> None:
    """Store, in place, the rows of all large embedding tables as int8."""
    for name, module in _tables(encoder):
        if module.weight.numel() >= _SMALLEST_QUANTIZED:
            _replace(encoder, name, Int8Embedding(module.weight.detach()))


def _tables(encoder: nn.Module) -> list[tuple[str, nn.Embedding]]:
    return [(name, module) for name, module in encoder.named_modules() if isinstance(module, nn.Embedding)]


def _replace(encoder: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, attribute = name.rpartition(".")
    setattr(encoder.get_submodule(parent), attribute, module)
