"""Linear maps to fewer dimensions: PCA for vectors, weighted low rank for tables."""

import torch
from edgeembed_exporters.tailoring.projection import Projection, fit_pca

__all__ = ["Projection", "fit_pca", "low_rank"]


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
