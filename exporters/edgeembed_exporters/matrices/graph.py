"""A matrix student as a graph without loops, for ONNX."""

from __future__ import annotations

import math
from typing import Any

import torch
from edgeembed_runtime.cmow.model_file import BACKWARD, CBOW, FORWARD, HEAD
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from edgeembed_exporters.layerless import layerless_config
from edgeembed_exporters.matrices.tensors import MatrixTensors

_TINY = 1e-30


class MatrixEncoder(nn.Module):
    """A matrix student in the place of a transformers encoder.

    Each token gets the vector of the whole text: the mean over tokens, which is what programs take, is that again.

    Args:
        student: Its tensors.
        max_seq_length: The most tokens of a text: they decide how often neighbours are multiplied.
    """

    def __init__(self, student: MatrixTensors, max_seq_length: int) -> None:
        super().__init__()
        tensors = {name: torch.from_numpy(tensor) for name, tensor in student.tensors.items()}
        held = {name.rpartition(".")[0] for name in tensors}
        tables = {name: _Table(name, tensors) for name in (FORWARD, BACKWARD, CBOW) if name in held}
        self.rightward, self.leftward, self.vectors = (tables.get(name) for name in (FORWARD, BACKWARD, CBOW))
        self.takes_mean = student.settings.get("cbow_pooling") == "mean"
        self.head = _Head(tensors) if HEAD in held else None
        self.halvings = math.ceil(math.log2(max(2, max_seq_length)))
        count = len(next(iter(tables.values())).rows.weight)
        width = self.head.weight.shape[0] if self.head else sum(table.width for table in tables.values())
        self.config = layerless_config(count, width, max_seq_length)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        """Give the text's vector for each token as last_hidden_state, (batch, tokens, width)."""
        mask = attention_mask[..., None].float()
        parts, sizes = [], []
        for table, reverse in ((self.rightward, False), (self.leftward, True)):
            if table is not None:
                product, size = self._product(table, input_ids, mask, reverse=reverse)
                parts.append(product)
                sizes.append(size)
        if self.vectors is not None:
            total = (self.vectors(input_ids) * mask).sum(dim=1)
            parts.append(total / mask.sum(dim=1).clamp_min(1) if self.takes_mean else total)
            sizes.append(torch.zeros_like(mask[:, 0]))
        vector = self._together(parts, sizes)
        return BaseModelOutput(last_hidden_state=vector[:, None] + 0 * mask)

    def _product(
        self, table: _Table, token_ids: torch.Tensor, mask: torch.Tensor, *, reverse: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Give the flat product (batch, d * d), divided by a number; and that number's logarithm, (batch, 1)."""
        side = math.isqrt(table.width)
        identity = torch.eye(side).flatten()
        rows = table(token_ids) * mask + identity * (1 - mask)
        matrices = (rows.flip(1) if reverse else rows).unflatten(-1, (side, side))
        size = torch.zeros_like(mask[:, 0])
        for _ in range(self.halvings):
            largest = matrices.abs().amax(dim=(-2, -1), keepdim=True).clamp_min(_TINY)
            size = size + largest.log().sum(dim=(1, 2, 3))[:, None]
            padded = torch.cat([matrices / largest, 0 * matrices[:, :1] + torch.eye(side)], dim=1)
            matrices = padded[:, 0:-1:2] @ padded[:, 1::2]
        return matrices[:, 0].flatten(1), size

    def _together(self, parts: list[torch.Tensor], sizes: list[torch.Tensor]) -> torch.Tensor:
        """Put parts of one vector together, divided by what the largest, or the head's bias, was divided by."""
        measured = [*sizes, torch.zeros_like(sizes[0])] if self.head else sizes
        largest = torch.cat(measured, dim=1).amax(dim=1, keepdim=True)
        scaled = [part * (size - largest).exp() for part, size in zip(parts, sizes, strict=True)]
        together = torch.cat(scaled, dim=1)
        return self.head(together, (-largest).exp()) if self.head else together


class _Table(nn.Module):
    """A table of docs/tensor-file.md: rows, or factors with their basis, and a bias."""

    def __init__(self, name: str, tensors: dict[str, torch.Tensor]) -> None:
        super().__init__()
        rows = tensors[f"{name}.{'factors' if f'{name}.factors' in tensors else 'weight'}"]
        self.rows = nn.Embedding(rows.shape[0], rows.shape[1], _weight=rows, _freeze=True)
        basis, bias = tensors.get(f"{name}.basis"), tensors.get(f"{name}.bias")
        self.basis = None if basis is None else nn.Parameter(basis, requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)
        self.width = int((self.rows.weight if basis is None else basis).shape[1])

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.rows(token_ids)
        if self.basis is not None:
            rows = rows @ self.basis
        return rows if self.bias is None else rows + self.bias


class _Head(nn.Module):
    """The linear layer after all parts."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.weight = nn.Parameter(tensors[f"{HEAD}.weight"], requires_grad=False)
        bias = tensors.get(f"{HEAD}.bias")
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)

    def forward(self, vectors: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        mapped = vectors @ self.weight.T
        return mapped if self.bias is None else mapped + self.bias * scale
