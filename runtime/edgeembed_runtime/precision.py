"""Vectors in fewer bytes, named as sentence-transformers names them."""

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

Precision = Literal["float32", "int8", "uint8", "binary", "ubinary"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

# The components of a unit vector lie within -1 and 1. A range fitted to the texts at hand, as sentence-transformers
# fits one, would make a text's vector depend on its neighbours.
_STEPS = 127
_MIDDLE = 128


def quantised(vectors: npt.NDArray[np.float32], precision: Precision) -> npt.NDArray[Any]:
    """Give unit vectors in a precision.

    Args:
        vectors: (n, dimension) float32, of at most unit length.
        precision: "float32" changes nothing. "int8" gives 127 times each number, rounded; "uint8" adds 128 to that,
            as vector stores without signed bytes want it. "ubinary" gives the signs, eight a byte, the first in the
            highest bit, a positive number as 1; the last byte is filled up with zeros. "binary" subtracts 128 from
            that.

    Returns:
        (n, dimension) float32, int8 or uint8; (n, dimension / 8, rounded up) int8 for "binary", uint8 for "ubinary".
    """
    if precision == "float32":
        return vectors
    if precision in ("binary", "ubinary"):
        bits = np.packbits(vectors > 0, axis=1)
        return bits if precision == "ubinary" else (bits ^ _MIDDLE).view(np.int8)
    steps = np.rint(vectors * _STEPS).astype(np.int8)
    return steps if precision == "int8" else steps.view(np.uint8) ^ _MIDDLE
