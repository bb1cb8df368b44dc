"""Linear maps to fewer dimensions: PCA for vectors, weighted low rank for tables."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_runtime.errors import InputError


@dataclass(frozen=True)
class Projection:
    """An affine map to fewer dimensions, `(v - mean) @ matrix`.

    Attributes:
        mean: float32 (width,).
        matrix: float32 (width, dim), orthonormal columns, most variance first.
        explained_variance: Share of the variance kept, 0 to 1.
    """

    mean: npt.NDArray[np.float32]
    matrix: npt.NDArray[np.float32]
    explained_variance: float


def fit_pca(vectors: npt.NDArray[np.floating], dim: int, *, sample: int = 100_000) -> Projection:
    """Fit the principal components of a teacher's vectors (HPD, section 3: h = W(e - mean)).

    Args:
        vectors: Teacher vectors (n, width) of any float type, memory-mapped or not.
        dim: Dimensions to keep.
        sample: Evenly spaced rows to fit on; a covariance of a few hundred dimensions is settled long before.

    Returns:
        The projection.

    Raises:
        InputError: If `dim` is above the width, or there are fewer vectors than dimensions.
    """
    count, width = vectors.shape
    if dim > width:
        raise InputError(
            f"head.dim is {dim}, but the teacher's vectors have {width} dimensions; choose {width} or less"
        )
    if count < dim:
        raise InputError(
            f"{count} sentences cannot settle {dim} dimensions; give a larger corpus or a smaller head.dim"
        )
    rows = np.linspace(0, count - 1, min(count, sample)).astype(np.int64)
    chosen = np.asarray(vectors[rows], dtype=np.float64)
    mean = chosen.mean(axis=0)
    variances, components = np.linalg.eigh(np.cov(chosen - mean, rowvar=False, bias=True))
    order = np.argsort(variances)[::-1][:dim]
    matrix = components[:, order]
    matrix *= np.sign(matrix[np.abs(matrix).argmax(axis=0), np.arange(dim)])  # the same signs on every machine
    kept = float(variances[order].sum() / variances.sum())
    return Projection(mean.astype(np.float32), matrix.astype(np.float32), kept)


def low_rank(rows: torch.Tensor, weights: torch.Tensor, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Factorise a table so that the rows that matter most are kept best.

    Minimises the sum of `weights * |row - narrow @ wide.T|^2`: the right singular vectors of the weighted rows,
    and every row's coordinates in them.

    Args:
        rows: float32 (n, width).
        weights: Non-negative float32 (n,).
        rank: Width of the narrow rows, at most `width`.

    Returns:
        The narrow rows (n, rank) and the wide matrix (width, rank), whose columns are orthonormal.
    """
    weighted = rows.double() * weights.double().sqrt()[:, None]
    _, components = torch.linalg.eigh(weighted.T @ weighted)
    wide = components[:, -rank:].flip(1)
    return (rows.double() @ wide).float(), wide.float()
