"""Arithmetic on rows of vectors, and the border to torch, which is never imported here."""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.quantization import Precision, widened

# Rows that are made doubles at a time.
_BLOCK = 4096


def unit(rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Give each row scaled to unit length; a row of zeros stays as it is.

    Args:
        rows: (n, dimension) or (dimension,) finite numbers, of any length.
    """
    units = np.empty(rows.shape, dtype=np.float32)
    for start in range(0, len(rows), _BLOCK) if rows.ndim > 1 else [0]:
        block = slice(start, start + _BLOCK) if rows.ndim > 1 else slice(None)
        wide = rows[block].astype(np.float64)  # in which no square of a float32 overflows or vanishes
        lengths = np.sqrt(np.einsum("...i,...i->...", wide, wide))[..., None]
        units[block] = wide / np.where(lengths > 0, lengths, 1)
    return units


def shortened(rows: npt.NDArray[np.float32], dimension: int, *, normalise: bool) -> npt.NDArray[np.float32]:
    """Give the leading numbers of each row, scaled to unit length again if asked for.

    Args:
        rows: (n, whole dimension) or (whole dimension,) float32.
        dimension: How many numbers to keep.
        normalise: Whether to scale what is left to unit length.

    Raises:
        InputError: If `dimension` is no whole number from 1 to the whole dimension.
    """
    whole = rows.shape[-1]
    if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or not 1 <= dimension <= whole:
        raise InputError(f"truncate_dim is {dimension!r}, expected a whole number from 1 to {whole}")
    kept = np.ascontiguousarray(rows[..., :dimension])
    return unit(kept) if normalise else kept


def cosines(a: Any, b: Any, precision: Precision | None = None) -> Any:
    """Give the cosine of each vector of `a` with each of `b`.

    Args:
        a: (n, dimension) or (dimension,), an array, or a torch tensor on the CPU.
        b: (m, dimension) or (dimension,), likewise.
        precision: What they are in; None stands for float32, and is refused for vectors of bytes.

    Returns:
        (n, m) float32; a tensor if `a` is one. The cosine with a vector of zeros is 0.

    Raises:
        InputError: If these are no finite vectors of one dimension.
    """
    left, right = _two(a, b, precision)
    return _like(a, unit(left) @ unit(right).T)


def pairwise_cosine_similarity(a: Any, b: Any, precision: Precision | None = None) -> Any:
    """Give the cosine of each vector of `a` with the one of `b` in its place.

    Args:
        a: (n, dimension) or (dimension,), an array, or a torch tensor on the CPU.
        b: Likewise.
        precision: As for `cosines`.

    Returns:
        (n,) float32; a tensor if `a` is one. The cosine with a vector of zeros is 0.

    Raises:
        InputError: If these are not as many finite vectors of one dimension.
    """
    left, right = _two(a, b, precision)
    if len(left) != len(right):
        raise InputError(f"a has {len(left)} vectors and b {len(right)}, expected as many in both")
    return _like(a, np.einsum("ij,ij->i", unit(left), unit(right)))


def as_tensor(vectors: npt.NDArray[Any]) -> Any:
    """Give a torch tensor over the same memory.

    Raises:
        InputError: If the caller has not imported torch.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        raise InputError("convert_to_tensor is True but torch is not loaded; import torch first, or leave it False")
    return torch.from_numpy(vectors)


def _two(a: Any, b: Any, precision: Precision | None) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    left, right = _rows(a, "a", precision), _rows(b, "b", precision)
    if left.shape[1] != right.shape[1]:
        raise InputError(f"a has {left.shape[1]} dimensions and b {right.shape[1]}, expected as many in both")
    return left, right


def _rows(vectors: Any, name: str, precision: Precision | None) -> npt.NDArray[np.float32]:
    try:
        rows = np.atleast_2d(np.asarray(vectors))
        rows = rows.astype(np.float32) if precision is None and rows.dtype.itemsize > 1 else rows
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} is no array of vectors ({error}); expected (n, dimension) numbers") from error
    if rows.ndim != 2:
        raise InputError(f"{name} has the shape {rows.shape}, expected (n, dimension) or (dimension,)")
    if precision is None and rows.dtype != np.float32:
        raise InputError(f"{name} is {rows.dtype}; say which precision that is, with precision='int8' for example")
    rows = rows if precision is None else widened(rows, precision)
    if not np.isfinite(rows).all():
        raise InputError(f"{name} holds numbers that are not finite, expected vectors as encode gives them")
    return rows


def _like(a: Any, result: npt.NDArray[np.float32]) -> Any:
    return a.new_tensor(result, dtype=sys.modules["torch"].float32) if hasattr(a, "new_tensor") else result
