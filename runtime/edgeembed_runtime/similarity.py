"""L2 normalization, truncation, cosine similarity and top-k selection of embeddings."""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.quantization import Precision, dequantize

# Rows that are converted to float64 at a time.
_BLOCK_ROWS = 4096


def normalize(vectors: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return vectors scaled to unit L2 norm; zero vectors stay zero.

    Args:
        vectors: (n, dimension) or (dimension,), finite.

    Returns:
        float32 of the same shape.
    """
    normalized = np.empty(vectors.shape, dtype=np.float32)
    for start in range(0, len(vectors), _BLOCK_ROWS) if vectors.ndim > 1 else [0]:
        block = slice(start, start + _BLOCK_ROWS) if vectors.ndim > 1 else slice(None)
        rows = vectors[block].astype(np.float64)  # the square of a float32 neither overflows nor underflows in float64
        norms = np.sqrt(np.einsum("...i,...i->...", rows, rows))[..., None]
        normalized[block] = rows / np.where(norms > 0, norms, 1)
    return normalized


def truncate(vectors: npt.NDArray[np.float32], dimension: int, *, renormalize: bool) -> npt.NDArray[np.float32]:
    """Return the first components of each vector.

    Args:
        vectors: (n, full dimension) or (full dimension,) float32.
        dimension: The number of components to keep.
        renormalize: Whether to scale the result to unit L2 norm again.

    Returns:
        (n, dimension) or (dimension,) float32.

    Raises:
        InputError: If `dimension` is not an integer from 1 to the full dimension.
    """
    full = vectors.shape[-1]
    if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or not 1 <= dimension <= full:
        raise InputError(f"truncate_dim is {dimension!r}, expected an integer from 1 to {full}")
    kept = np.ascontiguousarray(vectors[..., :dimension])
    return normalize(kept) if renormalize else kept


def cosine_similarity(a: Any, b: Any, precision: Precision | None = None) -> Any:
    """Return the cosine similarity of each vector of `a` with each vector of `b`.

    Args:
        a: (n, dimension) or (dimension,), an array, or a torch tensor on the CPU.
        b: (m, dimension) or (dimension,), likewise.
        precision: The precision of the embeddings. None means float32; 8-bit embeddings need it stated.

    Returns:
        (n, m) float32; a tensor if `a` is one. The similarity with a zero vector is 0.

    Raises:
        InputError: If the vectors are not finite, or differ in dimension.
    """
    left, right = _pair(a, b, precision)
    return _like(a, normalize(left) @ normalize(right).T)


def pairwise_cosine_similarity(a: Any, b: Any, precision: Precision | None = None) -> Any:
    """Return the cosine similarity of each vector of `a` with the vector of `b` in the same row.

    Args:
        a: (n, dimension) or (dimension,), an array, or a torch tensor on the CPU.
        b: Likewise, with as many rows.
        precision: As in `cosine_similarity`.

    Returns:
        (n,) float32; a tensor if `a` is one. The similarity with a zero vector is 0.

    Raises:
        InputError: If the vectors are not finite, or differ in number or dimension.
    """
    left, right = _pair(a, b, precision)
    if len(left) != len(right):
        raise InputError(f"a has {len(left)} vectors and b has {len(right)}, expected the same number in both")
    return _like(a, np.einsum("ij,ij->i", normalize(left), normalize(right)))


def dot_products(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the dot product of each row of `a` with each row of `b`: the cosines, if the rows are L2-normalized.

    Equal rows of `a` get exactly equal results, which a matmul does not guarantee: BLAS may round them differently, and
    ties would then depend on their positions.

    Args:
        a: (n, dimension) float32.
        b: (m, dimension) float32.

    Returns:
        (n, m) float32.
    """
    products: npt.NDArray[np.float32] = np.einsum("nd,md->nm", a, b)
    return products


def top_k_indices(scores: npt.NDArray[Any], k: int | None) -> npt.NDArray[np.intp]:
    """Return the indices of the highest scores, in descending order of score; ties keep their order.

    Args:
        scores: (n,), without NaN.
        k: The maximum number of indices to return; None returns all.

    Returns:
        (min(n, k),) indices.
    """
    candidates = np.arange(len(scores))
    if k is not None and k < len(scores):
        candidates = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    return candidates[np.argsort(-scores[candidates], kind="stable")][:k]


def as_tensor(vectors: npt.NDArray[Any]) -> Any:
    """Return a torch tensor that shares the memory of an array.

    Raises:
        InputError: If the caller has not imported torch, which this package never imports itself.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        raise InputError("convert_to_tensor is True but torch is not loaded; import torch first, or leave it False")
    return torch.from_numpy(vectors)


def _pair(a: Any, b: Any, precision: Precision | None) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    left, right = _as_rows(a, "a", precision), _as_rows(b, "b", precision)
    if left.shape[1] != right.shape[1]:
        raise InputError(f"a has {left.shape[1]} dimensions and b has {right.shape[1]}, expected the same in both")
    return left, right


def _as_rows(vectors: Any, name: str, precision: Precision | None) -> npt.NDArray[np.float32]:
    """Return vectors as a finite (n, dimension) float32 matrix."""
    try:
        rows = np.atleast_2d(np.asarray(vectors))
        rows = rows.astype(np.float32) if precision is None and rows.dtype.itemsize > 1 else rows
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} is not an array of vectors ({error}); expected shape (n, dimension)") from error
    if rows.ndim != 2:
        raise InputError(f"{name} has shape {rows.shape}, expected (n, dimension) or (dimension,)")
    if precision is None and rows.dtype != np.float32:
        raise InputError(f"{name} is {rows.dtype}; pass its precision, for example precision='int8'")
    rows = rows if precision is None else dequantize(rows, precision)
    if not np.isfinite(rows).all():
        raise InputError(f"{name} contains NaN or infinity, expected finite vectors as encode returns them")
    return rows


def _like(a: Any, result: npt.NDArray[np.float32]) -> Any:
    return a.new_tensor(result, dtype=sys.modules["torch"].float32) if hasattr(a, "new_tensor") else result
