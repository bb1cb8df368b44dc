"""Embedding tables of 2 or 4 bits per value: several values in a byte, the first one in the lowest bits.

A code c of b bits stands for c - (2^b - 1) / 2 times the scale of its row: for 2 bits -1.5, -0.5, 0.5 or 1.5.
"""

import itertools

import numpy as np
import numpy.typing as npt

TABLE_BITS = (2, 4)
"""The bits per value of packed tables."""


def max_level(bits: int) -> float:
    """Return the largest value that a code stands for, in units of the scale."""
    return float((1 << bits) - 1) / 2


def pack_codes(codes: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """Return codes packed into bytes.

    Args:
        codes: (rows, width) uint8, each below 2**bits; the width is a multiple of the values in a byte.
        bits: 2 or 4.

    Returns:
        (rows, width * bits / 8) uint8.
    """
    fields = codes.reshape(len(codes), -1, 8 // bits)
    packed: npt.NDArray[np.uint8] = np.bitwise_or.reduce(fields << np.arange(0, 8, bits, dtype=np.uint8), axis=2)
    return packed


def byte_values(bits: int) -> npt.NDArray[np.float32]:
    """Return the values in each byte, (256, 8 / bits) float32, in units of the scale."""
    levels = [code - max_level(bits) for code in range(1 << bits)]
    # `product` puts the highest bits of a byte first; here the value in the lowest bits is the first one.
    rows = [values[::-1] for values in itertools.product(levels, repeat=8 // bits)]
    return np.array(rows, dtype=np.float32)
