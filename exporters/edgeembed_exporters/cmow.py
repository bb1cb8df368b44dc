"""Matrix students and static embeddings that NumPy can run: their tensors (docs/tensor-file.md) and their graph."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_runtime.cmow.model_file import BACKWARD, CBOW, FORMAT, FORMAT_VERSION, FORWARD, HEAD
from edgeembed_runtime.cmow.packing import max_level, pack_codes
from edgeembed_runtime.cmow.safetensors import pack_tensors
from edgeembed_runtime.errors import InputError
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, StaticEmbedding
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from edgeembed_exporters.modules import layerless_config, read_static
from edgeembed_exporters.precision import Precision

Tensors = dict[str, npt.NDArray[Any]]

_QUANTIZED = (".weight", ".factors")
_FLOAT32_BITS = 32
_EPSILON = 1e-30
# Logarithms of the largest entries that a vector keeps its length with: a classifier reads more than the direction.
# Outside them float32 might not hold the vector or its squared norm.
_MIN_LOG_SCALE, _MAX_LOG_SCALE = math.log(2**-10), math.log(2**40)


@dataclass(frozen=True)
class MatrixTensors:
    """The tensors of a matrix student.

    Attributes:
        tensors: float32 tensors by the names in docs/tensor-file.md, without scales.
        settings: "architecture" and, with a CBOW table, "cbow_pooling".
        table_bits: The bits per value that the embedding tables were trained with: 2, 4 or, for none, 0.
        scales: float32 scale of each row of tables that were trained with few bits, by their tensor's name.
    """

    tensors: Tensors
    settings: dict[str, str]
    table_bits: int = 0
    scales: Tensors = field(default_factory=dict)

    @property
    def num_parameters(self) -> int:
        """The number of weights."""
        return sum(tensor.size for tensor in self.tensors.values())

    def min_size_bytes(self, precision: type[Precision]) -> int:
        """Return a lower bound of the size at a precision."""
        kept = set(self.scales) if precision.keeps_levels else set()
        bits = {name: self.table_bits if name in kept else precision.bits for name in self.tensors}
        return sum(tensor.size * bits[name] for name, tensor in self.tensors.items()) // 8


def is_matrix_student(first: nn.Module) -> bool:
    """Return whether a model's first module is a matrix student, which has a method `matrix_tensors`."""
    return hasattr(first, "matrix_tensors")


def read_matrices(model: Any) -> MatrixTensors:
    """Return the tensors of a model that NumPy alone can run.

    Args:
        model: The modules of a sentence-transformers model: a matrix student or a StaticEmbedding, then at most one
            linear Dense, then at most one Normalize.

    Raises:
        InputError: If it has other modules.
    """
    first, *rest = list(model)
    read = _first_tensors(first)
    head = rest[:-1] if rest and isinstance(rest[-1], Normalize) else rest
    if not head:
        return read
    is_linear = len(head) == 1 and isinstance(head[0], Dense) and isinstance(head[0].activation_function, nn.Identity)
    if not is_linear or f"{HEAD}.weight" in read.tensors:
        names = ", ".join(type(module).__name__ for module in head)
        raise InputError(
            f"the modules after the {type(first).__name__} are {names}; expected at most one linear Dense and "
            "Normalize for NumPy: choose the onnx backend"
        )
    return replace(read, tensors={**read.tensors, **_dense_tensors(head[0].linear)})


def pack(student: MatrixTensors, precision: type[Precision]) -> bytes:
    """Return the content of the tensor file at a precision that suits the numpy backend.

    Tables that were trained with fewer bits keep them if the precision keeps levels.
    """
    tensors: Tensors = {}
    settings = {"format": FORMAT, "format_version": FORMAT_VERSION, **student.settings}
    for name, tensor in student.tensors.items():
        if precision.keeps_levels and name in student.scales:
            tensors |= _packed(name, tensor, student.scales[name], student.table_bits)
            settings["table_bits"] = str(student.table_bits)
        else:
            tensors |= _at_precision(name, tensor, precision)
    return pack_tensors(tensors, settings)


def _first_tensors(first: Any) -> MatrixTensors:
    if is_matrix_student(first):
        tensors, settings = first.matrix_tensors()
        bits, scales = first.table_scales()
        return MatrixTensors(_arrays(tensors), settings, bits, _arrays(scales))
    if isinstance(first, StaticEmbedding):
        rows = read_static(first)[0].embeddings.weight
        return MatrixTensors({f"{CBOW}.weight": _to_numpy(rows)}, {"architecture": "cbow", "cbow_pooling": "mean"})
    raise InputError(
        f"the first module is a {type(first).__name__}, which NumPy alone cannot run; expected a matrix student or a "
        "StaticEmbedding: choose the onnx backend"
    )


def _dense_tensors(linear: nn.Linear) -> Tensors:
    tensors = {f"{HEAD}.weight": _to_numpy(linear.weight)}
    return tensors if linear.bias is None else {**tensors, f"{HEAD}.bias": _to_numpy(linear.bias)}


def _arrays(tensors: Mapping[str, torch.Tensor]) -> Tensors:
    return {name: _to_numpy(tensor) for name, tensor in tensors.items()}


def _to_numpy(tensor: torch.Tensor) -> npt.NDArray[np.float32]:
    array: npt.NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return array


def _at_precision(name: str, tensor: npt.NDArray[np.float32], precision: type[Precision]) -> Tensors:
    if name.endswith(".bias"):
        return {name: tensor}
    if not name.endswith(_QUANTIZED):
        return {name: tensor.astype(np.float16) if precision.bits < _FLOAT32_BITS else tensor}
    values, scale = precision.pack(tensor)
    return {name: values} if scale is None else {name: values, f"{name.rpartition('.')[0]}.scale": scale}


def _packed(name: str, tensor: npt.NDArray[np.float32], scale: npt.NDArray[np.float32], bits: int) -> Tensors:
    """Return the codes of a table whose values are those of codes already, and its scales."""
    codes = np.rint(tensor / scale[:, None] + max_level(bits)).clip(0, 2 * max_level(bits)).astype(np.uint8)
    return {name: pack_codes(codes, bits), f"{name.rpartition('.')[0]}.scale": scale}


class MatrixEncoder(nn.Module):
    """A matrix student with the interface of a transformers encoder.

    Every token gets the embedding of the whole text, so that mean pooling, which other libraries apply, returns it.

    Args:
        student: Its tensors.
        max_seq_length: Maximum number of tokens of a text; it decides how often neighboring matrices are multiplied.
    """

    def __init__(self, student: MatrixTensors, max_seq_length: int) -> None:
        super().__init__()
        tensors = {name: torch.from_numpy(tensor) for name, tensor in student.tensors.items()}
        stored = {name.rpartition(".")[0] for name in tensors}
        tables = {name: _Table(name, tensors) for name in (FORWARD, BACKWARD, CBOW) if name in stored}
        # These names become names of tensors in the ONNX file.
        self.rightward, self.leftward, self.vectors = (tables.get(name) for name in (FORWARD, BACKWARD, CBOW))
        self.mean_pooling = student.settings.get("cbow_pooling") == "mean"
        self.head = _Head(tensors) if HEAD in stored else None
        count = len(next(iter(tables.values())).rows.weight)
        width = self.head.weight.shape[0] if self.head else sum(table.width for table in tables.values())
        self.config = layerless_config(count, width, max_seq_length)
        self.limit_length(max_seq_length)

    def limit_length(self, max_seq_length: int) -> None:
        """Set the maximum number of tokens of a text."""
        self.halvings = math.ceil(math.log2(max(2, max_seq_length)))
        self.config.max_position_embeddings = max_seq_length

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        """Return the text's embedding for each token as last_hidden_state, (batch, tokens, width)."""
        mask = attention_mask[..., None].float()
        parts, log_scales = [], []
        for table, reverse in ((self.rightward, False), (self.leftward, True)):
            if table is not None:
                chained, log_scale = self._chain_matmul(table, input_ids, mask, reverse=reverse)
                parts.append(chained)
                log_scales.append(log_scale)
        if self.vectors is not None:
            total = (self.vectors(input_ids) * mask).sum(dim=1)
            parts.append(total / mask.sum(dim=1).clamp_min(1) if self.mean_pooling else total)
            log_scales.append(torch.zeros_like(mask[:, 0]))
        vector = self._concatenate(parts, log_scales)
        return BaseModelOutput(last_hidden_state=vector[:, None] + 0 * mask)

    def _chain_matmul(
        self, table: _Table, token_ids: torch.Tensor, mask: torch.Tensor, *, reverse: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the scaled matmul of all matrices (batch, d * d), and the logarithm of its scale (batch, 1)."""
        side = math.isqrt(table.width)
        identity = torch.eye(side).flatten()
        rows = table(token_ids) * mask + identity * (1 - mask)
        matrices = (rows.flip(1) if reverse else rows).unflatten(-1, (side, side))
        log_scale = torch.zeros_like(mask[:, 0])
        for _ in range(self.halvings):
            largest = matrices.abs().amax(dim=(-2, -1), keepdim=True).clamp_min(_EPSILON)
            log_scale = log_scale + largest.log().sum(dim=(1, 2, 3))[:, None]
            padded = torch.cat([matrices / largest, 0 * matrices[:, :1] + torch.eye(side)], dim=1)
            matrices = padded[:, 0:-1:2] @ padded[:, 1::2]
        return matrices[:, 0].flatten(1), log_scale

    def _concatenate(self, parts: list[torch.Tensor], log_scales: list[torch.Tensor]) -> torch.Tensor:
        """Concatenate the parts of a vector, divided by a common factor if float32 might not hold them otherwise."""
        candidates = [*log_scales, torch.zeros_like(log_scales[0])] if self.head else log_scales
        largest = torch.cat(candidates, dim=1).amax(dim=1, keepdim=True)
        removed = largest - largest.clamp(_MIN_LOG_SCALE, _MAX_LOG_SCALE)
        scaled = [part * (scale - removed).exp() for part, scale in zip(parts, log_scales, strict=True)]
        vector = torch.cat(scaled, dim=1)
        return self.head(vector, (-removed).exp()) if self.head else vector


class _Table(nn.Module):
    """A table of docs/tensor-file.md: rows, or low-rank factors with their basis, and a bias."""

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
        projected = vectors @ self.weight.T
        return projected if self.bias is None else projected + self.bias * scale
