"""Blockwise quantization to 4 or 8 bits: blocks of consecutive values in a row share a scale.

The layout is that of ONNX Runtime's MatMulNBits and GatherBlockQuantized.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

# Candidates for the largest representable magnitude of a block, relative to its largest value. A smaller one clips the
# largest values and rounds the others more finely; the one with the least squared error is chosen for each block.
_CLIPPING_RATIOS = np.linspace(0.6, 1.1, 21, dtype=np.float32)
_MIN_MAGNITUDE = 1e-12
_ROUNDING = 1e-5  # of float32 values that were divided and multiplied again


@dataclass(frozen=True)
class QuantizedBlocks:
    """A matrix whose rows are quantized in blocks.

    Attributes:
        quantized: uint8 (rows, blocks, block size), 0 to 15 at 4 bits; the zero point is the middle, 8.
        scales: float32 (rows, blocks).
        bits: 4 or 8.
    """

    quantized: npt.NDArray[np.uint8]
    scales: Array
    bits: int

    def packed(self) -> npt.NDArray[np.uint8]:
        """Return the bytes to store, uint8 (rows, blocks, bytes); at 4 bits, even positions are in the low bits."""
        if self.bits == 8:
            return self.quantized
        return (self.quantized[..., ::2] | (self.quantized[..., 1::2] << 4)).astype(np.uint8)

    def dequantized(self) -> Array:
        """Return the values that the matrix stands for, float32 (rows, columns padded to whole blocks)."""
        return dequantize_blocks(self.quantized, self.scales, self.bits).reshape(len(self.quantized), -1)


def quantize_rows(matrix: Array, block_size: int, bits: int) -> QuantizedBlocks:
    """Quantize a matrix, each value rounded to the nearest.

    Args:
        matrix: float32 (rows, columns).
        block_size: Number of values that share a scale.
        bits: 4 or 8.
    """
    blocks = split_into_blocks(matrix, block_size)
    scales = find_scales(blocks, bits)
    return QuantizedBlocks(quantize_blocks(blocks, scales, bits), scales, bits)


def find_row_levels(matrix: Array, bits: int) -> QuantizedBlocks | None:
    """Return a matrix whose rows hold `2**bits` levels, with one scale for each row; None if some row holds others.

    The levels are evenly spaced, and the lowest is the row's value of largest magnitude: those to which a student
    trains with `table_bits`. Nothing is lost.

    Args:
        matrix: float32 (rows, columns).
        bits: 4 or 8.
    """
    rows = matrix[:, None]
    scales = _widest_scales(rows, bits)
    blocks = QuantizedBlocks(quantize_blocks(rows, scales, bits), scales, bits)
    is_exact = np.allclose(blocks.dequantized(), matrix, rtol=_ROUNDING, atol=_MIN_MAGNITUDE)
    return blocks if is_exact else None


def split_into_blocks(matrix: Array, block_size: int) -> Array:
    """Return the rows of a matrix as blocks, padded with zeros: float32 (rows, blocks, block size)."""
    rows, columns = matrix.shape
    return np.pad(matrix, [(0, 0), (0, -columns % block_size)]).reshape(rows, -1, block_size)


def find_scales(values: Array, bits: int) -> Array:
    """Return the scale of each block that minimizes the squared error of rounding.

    Args:
        values: float32 (..., block size).
        bits: 4 or 8.

    Returns:
        float32 (...).
    """
    widest = _widest_scales(values, bits)
    best, least_error = widest, np.full(widest.shape, np.inf, dtype=np.float32)
    for ratio in _CLIPPING_RATIOS:
        scales = widest * ratio
        error = ((dequantize_blocks(quantize_blocks(values, scales, bits), scales, bits) - values) ** 2).sum(axis=-1)
        best, least_error = np.where(error < least_error, scales, best), np.minimum(error, least_error)
    found: Array = best.astype(np.float32)
    return found


def _widest_scales(values: Array, bits: int) -> Array:
    """Return the scale (...) of each block (..., block size) at which its value of largest magnitude is the lowest.

    There is one more value below the zero point than above: a negative scale gives it to a largest value above zero.
    """
    largest = np.take_along_axis(values, np.abs(values).argmax(axis=-1, keepdims=True), axis=-1)[..., 0]
    largest = np.where(np.abs(largest) < _MIN_MAGNITUDE, np.float32(_MIN_MAGNITUDE), largest)
    scales: Array = largest / np.float32(-(2 ** (bits - 1)))
    return scales


def quantize_blocks(values: Array, scales: Array, bits: int) -> npt.NDArray[np.uint8]:
    """Round values (..., block size) by the scales (...) of their blocks."""
    zero_point = 2 ** (bits - 1)
    rounded = np.clip(np.rint(values / scales[..., None]) + zero_point, 0, 2 * zero_point - 1)
    quantized: npt.NDArray[np.uint8] = rounded.astype(np.uint8)
    return quantized


def dequantize_blocks(quantized: npt.NDArray[np.uint8], scales: Array, bits: int) -> Array:
    """Return the float32 values that quantized values (..., block size) with scales (...) stand for."""
    values: Array = (quantized.astype(np.float32) - 2 ** (bits - 1)) * scales[..., None]
    return values
