"""Affine maps of vectors to fewer dimensions: principal components, whitened or not."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError

# Of the largest variance: what varies less is as good as nothing, and would only become loud.
_LEAST_VARIANCE = 1e-6


@dataclass(frozen=True)
class Projection:
    """An affine map to fewer dimensions, `(v - mean) @ matrix`.

    Attributes:
        mean: float32 (width,).
        matrix: float32 (width, dim), most variance first; its columns are orthogonal, and of length 1 unless
            they whiten.
        explained_variance: Share of the variance kept, 0 to 1, before any whitening.
    """

    mean: npt.NDArray[np.float32]
    matrix: npt.NDArray[np.float32]
    explained_variance: float


def fit_pca(vectors: npt.NDArray[np.floating], dim: int, *, whiten: bool = False, sample: int = 100_000) -> Projection:
    """Fit the principal components of a model's vectors (HPD, section 3: h = W(e - mean)).

    Args:
        vectors: Vectors (n, width) of any float type, memory-mapped or not.
        dim: Dimensions to keep.
        whiten: Whether every dimension gets the same variance (Su et al. 2021, "Whitening sentence
            representations", section 3.2), 1 unless it had next to none.
        sample: Evenly spaced rows to fit on; a covariance of a few hundred dimensions is settled long before.

    Returns:
        The projection.

    Raises:
        InputError: If `dim` is none or above the width, there are fewer vectors than dimensions, or all are alike.
    """
    count, width = vectors.shape
    check_dim(dim, count, width)
    rows = np.linspace(0, count - 1, min(count, sample)).astype(np.int64)
    chosen = np.asarray(vectors[rows], dtype=np.float64)
    mean = chosen.mean(axis=0)
    variances, components = np.linalg.eigh(np.cov(chosen - mean, rowvar=False, bias=True))
    if variances[-1] <= 0:
        raise InputError(f"all {count} vectors are the same; expected those of a corpus of different sentences")
    order = np.argsort(variances)[::-1][:dim]
    matrix = components[:, order]
    matrix *= np.sign(matrix[np.abs(matrix).argmax(axis=0), np.arange(dim)])  # the same signs on every machine
    if whiten:
        matrix /= np.sqrt(np.maximum(variances[order], _LEAST_VARIANCE * variances[-1]))
    kept = float(variances[order].sum() / variances.sum())
    return Projection(mean.astype(np.float32), matrix.astype(np.float32), kept)


def check_dim(dim: int, count: int, width: int) -> None:
    """Refuse a number of dimensions that vectors cannot be mapped to.

    Args:
        dim: Dimensions to keep.
        count: How many vectors there are to fit on.
        width: How many dimensions they have.

    Raises:
        InputError: If `dim` is none or above the width, or above the number of vectors.
    """
    if not 1 <= dim <= width:
        raise InputError(f"dim is {dim}, but the vectors have {width} dimensions; choose 1 to {width}")
    if count < dim:
        raise InputError(f"{count} sentences cannot settle {dim} dimensions; give a larger corpus or a smaller dim")
