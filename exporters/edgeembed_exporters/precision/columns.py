"""Weights in int8, a scale a column."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

_TINY = 1e-5


def round_columns(weight: Array, outermost: int) -> tuple[npt.NDArray[np.int8], Array]:
    """Round a product's weights to whole levels.

    Args:
        weight: float32 (channels, columns).
        outermost: The level of a column's largest number.

    Returns:
        The levels, int8 (channels, columns), and what a level of each column stands for, float32 (columns,).
    """
    scales: Array = np.maximum(np.abs(weight).max(axis=0), np.float32(1e-12)) / np.float32(outermost)
    return np.rint(weight / scales).astype(np.int8), scales


def smoothing_factors(weight: Array, peak: Array, share: float) -> Array:
    """Give divisors of an activation's channels, which multiply the rows of its weights.

    Args:
        weight: float32 (channels, columns).
        peak: How far each channel reaches, float32 (channels,).
        share: How much of the differences between channels goes over to the weights, 0 to 1 (alpha of SmoothQuant,
            Xiao et al. 2023, equation 4).
    """
    heaviest = np.abs(weight).max(axis=1)
    factors = np.maximum(peak, _TINY) ** share / np.maximum(heaviest, _TINY) ** (1 - share)
    smoothing: Array = (factors / np.exp(np.log(factors).mean())).astype(np.float32)
    return smoothing
