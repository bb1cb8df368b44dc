"""The tensors of a matrix student, as docs/tensor-file.md names them, at any precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_runtime.cmow.model_file import CBOW, FORMAT, FORMAT_VERSION, HEAD
from edgeembed_runtime.cmow.safetensors import pack_tensors
from edgeembed_runtime.errors import InputError
from torch import nn

from edgeembed_exporters.options import Precision
from edgeembed_exporters.static import read_static

Tensors = dict[str, npt.NDArray[Any]]

_CODED = (".weight", ".factors")
_CODES = 127


@dataclass(frozen=True)
class MatrixTensors:
    """A matrix student in numbers.

    Attributes:
        tensors: float32, by the names of docs/tensor-file.md.
        settings: architecture and, where there are vectors, cbow_pooling.
    """

    tensors: Tensors
    settings: dict[str, str]

    @property
    def parameters(self) -> int:
        """How many numbers it holds."""
        return sum(tensor.size for tensor in self.tensors.values())


def is_matrix_student(first: nn.Module) -> bool:
    """Tell whether a model's first module gives its tensors by those names."""
    return hasattr(first, "matrix_tensors")


def read_matrices(model: Any) -> MatrixTensors:
    """Give the tensors of a model: a matrix student or a StaticEmbedding, then perhaps a linear Dense and Normalize.

    Args:
        model: A sentence-transformer.

    Raises:
        InputError: If it is another, which NumPy alone cannot run.
    """
    first, *rest = list(model)
    read = _first_tensors(first)
    head = rest[:-1] if rest and type(rest[-1]).__name__ == "Normalize" else rest
    if not head:
        return read
    names = [type(module).__name__ for module in head]
    linear = names == ["Dense"] and isinstance(head[0].activation_function, nn.Identity)
    if not linear or f"{HEAD}.weight" in read.tensors:
        raise InputError(
            f"after the {type(first).__name__} come {', '.join(names)}; expected, for NumPy, at most one linear Dense "
            "and Normalize: take the onnx backend"
        )
    return MatrixTensors({**read.tensors, **_dense_tensors(head[0].linear)}, read.settings)


def pack(student: MatrixTensors, precision: Precision) -> bytes:
    """Give the tensor file at a precision, any but int4: tables and head at int8 have a scale for each row."""
    coded: Tensors = {}
    for name, tensor in student.tensors.items():
        coded |= _coded(name, tensor, precision)
    return pack_tensors(coded, {"format": FORMAT, "format_version": FORMAT_VERSION, **student.settings})


def _first_tensors(first: Any) -> MatrixTensors:
    if is_matrix_student(first):
        tensors, settings = first.matrix_tensors()
        return MatrixTensors({name: _numbers(tensor) for name, tensor in tensors.items()}, settings)
    if type(first).__name__ == "StaticEmbedding":
        rows = read_static(first)[0].embeddings.weight
        return MatrixTensors({f"{CBOW}.weight": _numbers(rows)}, {"architecture": "cbow", "cbow_pooling": "mean"})
    raise InputError(
        f"the first module is a {type(first).__name__}, which NumPy alone cannot run; expected a matrix student or a "
        "StaticEmbedding: take the onnx backend"
    )


def _dense_tensors(linear: nn.Linear) -> Tensors:
    tensors = {f"{HEAD}.weight": _numbers(linear.weight)}
    return tensors if linear.bias is None else {**tensors, f"{HEAD}.bias": _numbers(linear.bias)}


def _numbers(tensor: torch.Tensor) -> npt.NDArray[np.float32]:
    numbers: npt.NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return numbers


def _coded(name: str, tensor: npt.NDArray[np.float32], precision: Precision) -> Tensors:
    if precision == "fp32" or name.endswith(".bias"):
        return {name: tensor}
    if precision == "fp16" or not name.endswith(_CODED):
        return {name: tensor.astype(np.float16)}
    scale = np.abs(tensor).max(axis=1) / _CODES
    codes = np.rint(tensor / np.where(scale == 0, 1, scale)[:, None]).astype(np.int8)
    return {name: codes, f"{name.rpartition('.')[0]}.scale": scale.astype(np.float32)}
