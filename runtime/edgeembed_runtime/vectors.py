"""Arithmetic on rows of vectors, and the border to torch, which is never imported here."""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError


def unit(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Give each row scaled to unit length; a row of zeros stays as it is.

    Args:
        rows: (n, dimension) float32.
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: npt.NDArray[np.float32] = rows / np.maximum(lengths, np.finfo(np.float32).tiny)
    return scaled


def shortened(rows: npt.NDArray[np.float32], dimension: int, *, normalise: bool) -> npt.NDArray[np.float32]:
    """Give the leading numbers of each row, scaled to unit length again if asked for.

    Args:
        rows: (n, whole dimension) float32.
        dimension: How many numbers to keep.
        normalise: Whether to scale what is left to unit length.

    Raises:
        InputError: If `dimension` is no whole number from 1 to the whole dimension.
    """
    whole = rows.shape[1]
    if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or not 1 <= dimension <= whole:
        raise InputError(f"truncate_dim is {dimension!r}, expected a whole number from 1 to {whole}")
    kept = np.ascontiguousarray(rows[:, :dimension])
    return unit(kept) if normalise else kept


def cosines(a: Any, b: Any) -> Any:
    """Give the cosine of each vector of `a` with each of `b`.

    Args:
        a: (n, dimension) or (dimension,), an array, or a torch tensor on the CPU.
        b: (m, dimension) or (dimension,), likewise.

    Returns:
        (n, m) float32; a tensor if `a` is one. The cosine with a vector of zeros is 0.

    Raises:
        InputError: If these are no vectors of one dimension.
    """
    left, right = _rows(a, "a"), _rows(b, "b")
    if left.shape[1] != right.shape[1]:
        raise InputError(f"a has {left.shape[1]} dimensions and b {right.shape[1]}, expected as many in both")
    matrix = unit(left) @ unit(right).T
    return a.new_tensor(matrix) if hasattr(a, "new_tensor") else matrix


def as_tensor(vectors: npt.NDArray[np.float32]) -> Any:
    """Give a torch tensor over the same memory.

    Raises:
        InputError: If the caller has not imported torch.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        raise InputError("convert_to_tensor is True but torch is not loaded; import torch first, or leave it False")
    return torch.from_numpy(vectors)


def _rows(vectors: Any, name: str) -> npt.NDArray[np.float32]:
    try:
        rows = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} is no array of vectors ({error}); expected (n, dimension) numbers") from error
    if rows.ndim != 2:
        raise InputError(f"{name} has the shape {rows.shape}, expected (n, dimension) or (dimension,)")
    return rows
