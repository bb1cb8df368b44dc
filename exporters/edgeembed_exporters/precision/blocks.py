"""Numbers of a few bits in blocks that share a scale, as MatMulNBits and GatherBlockQuantized read them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

# Shares of a block's largest number that the outermost level may stand for. Less clips the largest and rounds the
# others finer; which is best is tried out for each block.
_SHARES = np.linspace(0.6, 1.1, 21, dtype=np.float32)


@dataclass(frozen=True)
class Blocks:
    """A matrix in blocks along its rows.

    Attributes:
        levels: uint8 (rows, blocks, block), 0 to 15 at 4 bits; the middle one, 8, stands for zero.
        scales: float32 (rows, blocks).
        bits: Of a level: 4 or 8.
    """

    levels: npt.NDArray[np.uint8]
    scales: Array
    bits: int

    def packed(self) -> npt.NDArray[np.uint8]:
        """Give the bytes, at 4 bits two levels each, the first in the low half: uint8 (rows, blocks, bytes)."""
        if self.bits == 8:
            return self.levels
        return (self.levels[..., ::2] | (self.levels[..., 1::2] << 4)).astype(np.uint8)

    def values(self) -> Array:
        """Give the numbers that are stored, float32 (rows, columns padded to whole blocks)."""
        return dequantise(self.levels, self.scales, self.bits).reshape(len(self.levels), -1)


def block_scales(values: Array, bits: int) -> Array:
    """Give each block the scale that loses least.

    Args:
        values: float32 (..., block).
        bits: Of a level.

    Returns:
        float32 (...).
    """
    # The sign of the largest decides whether the extra level, -8, is used for it.
    largest = np.take_along_axis(values, np.abs(values).argmax(axis=-1, keepdims=True), axis=-1)[..., 0]
    largest = np.where(np.abs(largest) < 1e-12, np.float32(1e-12), largest)
    outermost = np.float32(-(2 ** (bits - 1)))
    best, least = largest / outermost, np.full(largest.shape, np.inf, dtype=np.float32)
    for share in _SHARES:
        scales = largest * share / outermost
        error = ((dequantise(quantise(values, scales, bits), scales, bits) - values) ** 2).sum(axis=-1)
        best, least = np.where(error < least, scales, best), np.minimum(error, least)
    found: Array = best.astype(np.float32)
    return found


def quantise(values: Array, scales: Array, bits: int) -> npt.NDArray[np.uint8]:
    """Give the levels nearest to values (..., block), whose blocks have the scales (...)."""
    middle = 2 ** (bits - 1)
    levels = np.clip(np.rint(values / scales[..., None]) + middle, 0, 2 * middle - 1)
    given: npt.NDArray[np.uint8] = levels.astype(np.uint8)
    return given


def dequantise(levels: npt.NDArray[np.uint8], scales: Array, bits: int) -> Array:
    """Give the values that levels (..., block) stand for."""
    values: Array = (levels.astype(np.float32) - 2 ** (bits - 1)) * scales[..., None]
    return values


def round_rows(matrix: Array, block: int, bits: int) -> Blocks:
    """Round a matrix, each row in blocks of its own.

    Args:
        matrix: float32 (rows, columns).
        block: Numbers a block.
        bits: Of a level.
    """
    blocks = in_blocks(matrix, block)
    scales = block_scales(blocks, bits)
    return Blocks(quantise(blocks, scales, bits), scales, bits)


def in_blocks(matrix: Array, block: int) -> Array:
    """Give the rows of a matrix in blocks, the last filled up with zeros: float32 (rows, blocks, block)."""
    rows, columns = matrix.shape
    return np.pad(matrix, [(0, 0), (0, -columns % block)]).reshape(rows, -1, block)
