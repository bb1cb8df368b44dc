"""Vectors in fewer bytes, named as sentence-transformers names them."""

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError

Precision = Literal["float32", "int8", "uint8", "binary", "ubinary"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

# The components of a unit vector lie within -1 and 1. A range fitted to the texts at hand, as sentence-transformers
# fits one, would make a text's vector depend on its neighbours.
_STEPS = 127
_MIDDLE = 128


def quantize(vectors: npt.NDArray[np.float32], precision: Precision) -> npt.NDArray[Any]:
    """Give unit vectors in a precision.

    Args:
        vectors: (n, dimension) or (dimension,) float32, of at most unit length.
        precision: "float32" changes nothing. "int8" gives 127 times each number, rounded; "uint8" adds 128 to that,
            as vector stores without signed bytes want it. "ubinary" gives the signs, eight a byte, the first in the
            highest bit, a positive number as 1. "binary" subtracts 128 from that.

    Returns:
        As many rows: float32, int8 or uint8; for "binary" int8 and for "ubinary" uint8, dimension / 8 columns.

    Raises:
        InputError: If signs are asked for and 8 does not divide the dimension.
    """
    if precision == "float32":
        return vectors
    if precision in ("binary", "ubinary"):
        if vectors.shape[-1] % 8:
            raise InputError(
                f"{vectors.shape[-1]} numbers do not fill whole bytes with signs; pass another truncate_dim"
            )
        bits = np.packbits(vectors > 0, axis=-1)
        return bits if precision == "ubinary" else (bits ^ _MIDDLE).view(np.int8)
    steps = np.clip(np.rint(vectors * _STEPS), -_STEPS, _STEPS).astype(np.int8)
    return steps if precision == "int8" else steps.view(np.uint8) ^ _MIDDLE


def widened(vectors: npt.NDArray[Any], precision: Precision) -> npt.NDArray[np.float32]:
    """Give vectors whose cosines are those of quantize ones: what `quantize` gave, as numbers again.

    Args:
        vectors: (n, columns), as `quantize` gives them.
        precision: What they are in.

    Returns:
        (n, dimension) float32, not of unit length unless they are "float32".

    Raises:
        InputError: If they are not of the type that the precision has, or there is no such precision.
    """
    if precision not in PRECISIONS:
        raise InputError(f"precision is {precision!r}, expected one of {', '.join(PRECISIONS)}")
    expected = {"float32": "float32", "int8": "int8", "uint8": "uint8", "binary": "int8", "ubinary": "uint8"}[precision]
    if precision != "float32" and vectors.dtype != expected:
        raise InputError(f"the vectors are {vectors.dtype}, expected {expected} for the precision {precision}")
    if precision in ("binary", "ubinary"):
        bits = vectors.view(np.uint8) ^ np.uint8(_MIDDLE if precision == "binary" else 0)
        return np.unpackbits(bits, axis=1).astype(np.float32) * 2 - 1
    numbers = vectors.astype(np.float32)
    return numbers - _MIDDLE if precision == "uint8" else numbers
