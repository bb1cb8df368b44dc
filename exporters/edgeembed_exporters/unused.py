"""What no single text within the limit uses of an encoder: far positions, and token types."""

import torch
from torch import nn

from edgeembed_exporters.source import first_position, position_tables


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
        return self.row.reshape((1,) * ids.ndim + (-1,))


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


def _tables(encoder: nn.Module) -> list[tuple[str, nn.Embedding]]:
    return [(name, module) for name, module in encoder.named_modules() if isinstance(module, nn.Embedding)]


def _replace(encoder: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, attribute = name.rpartition(".")
    setattr(encoder.get_submodule(parent), attribute, module)
