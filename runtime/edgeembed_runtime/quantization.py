"""Quantize embeddings to 8 bits or 1 bit per component, with the precision names of sentence-transformers."""

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError

Precision = Literal["float32", "int8", "uint8", "binary", "ubinary"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

# The components of a unit vector lie in [-1, 1], so that the scale is fixed. A scale calibrated on the texts at hand,
# as in sentence-transformers, would make a text's embedding depend on the other texts.
_SCALE = 127
_UINT8_ZERO_POINT = 128


def validate_precision(precision: object) -> None:
    """Raise InputError unless the precision is one of `PRECISIONS`."""
    if precision not in PRECISIONS:
        raise InputError(f"precision is {precision!r}, expected one of {', '.join(PRECISIONS)}")


def quantize(vectors: npt.NDArray[np.float32], precision: Precision) -> npt.NDArray[Any]:
    """Return unit vectors quantized to a precision.

    Args:
        vectors: (n, dimension) or (dimension,) float32, with a norm of at most 1.
        precision: "float32" returns the vectors as they are. "int8" multiplies each component by 127 and rounds it.
            "uint8" is int8 plus a zero point of 128, for vector stores without signed bytes. "ubinary" packs the
            signs into bits, eight per byte, the first in the highest bit, 1 for a positive component. "binary" is
            ubinary minus 128.

    Returns:
        float32, int8 or uint8 of the same shape; for "binary" int8 and for "ubinary" uint8 with dimension / 8 columns.

    Raises:
        InputError: If the precision is binary and the dimension is not a multiple of 8.
    """
    if precision == "float32":
        return vectors
    if precision in ("binary", "ubinary"):
        if vectors.shape[-1] % 8:
            raise InputError(
                f"the dimension is {vectors.shape[-1]}, expected a multiple of 8 for precision {precision!r}; "
                "pass another truncate_dim"
            )
        bits = np.packbits(vectors > 0, axis=-1)
        return bits if precision == "ubinary" else (bits ^ _UINT8_ZERO_POINT).view(np.int8)
    codes = np.clip(np.rint(vectors * _SCALE), -_SCALE, _SCALE).astype(np.int8)
    return codes if precision == "int8" else codes.view(np.uint8) ^ _UINT8_ZERO_POINT


def dequantize(vectors: npt.NDArray[Any], precision: Precision) -> npt.NDArray[np.float32]:
    """Return quantized vectors as float32, up to a constant factor that a cosine ignores.

    Args:
        vectors: (n, columns), as `quantize` returns them.
        precision: Their precision.

    Returns:
        (n, dimension) float32; normalized only for "float32".

    Raises:
        InputError: If the precision is unknown, or the vectors have another type than `quantize` returns for it.
    """
    validate_precision(precision)
    expected = {"float32": "float32", "int8": "int8", "uint8": "uint8", "binary": "int8", "ubinary": "uint8"}[precision]
    if precision != "float32" and vectors.dtype != expected:
        raise InputError(f"the vectors are {vectors.dtype}, expected {expected} for the precision {precision}")
    if precision in ("binary", "ubinary"):
        bits = vectors.view(np.uint8) ^ np.uint8(_UINT8_ZERO_POINT if precision == "binary" else 0)
        return np.unpackbits(bits, axis=1).astype(np.float32) * 2 - 1
    codes = vectors.astype(np.float32)
    return codes - _UINT8_ZERO_POINT if precision == "uint8" else codes
