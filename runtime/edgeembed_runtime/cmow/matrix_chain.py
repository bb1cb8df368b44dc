"""Multiply a chain of matrices in O(log n) steps, without overflow or underflow."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

# Between two checks of the norms, at most 8 + 7 matrices are multiplied. If none has a norm above 2**7 or below
# 2**-7, their product stays below 2**105, and terms that float32 cannot hold (below 2**-126) do not contribute.
# Rescaled matrices may have a norm of d, at most 2**8, and so a product of 2**120; float32 ends at 2**128.
_STEPS = 3
_MIN_SQUARED_NORM, _MAX_SQUARED_NORM = 2.0**-14, 2.0**14


def chain_matmul(matrices: Array) -> tuple[Array, list[int]]:
    """Return the products of sequences of matrices of any magnitude.

    Adjacent matrices are multiplied, all pairs at once, until one matrix is left. Matrices that leave a moderate range
    are divided by a power of two, which is exact, and the exponents are summed.

    Args:
        matrices: (sequences, n, d, d) float32. The product of no matrices is the identity.

    Returns:
        (sequences, d, d) float32, and an exponent for each: the product is the matrix times 2**exponent. The exponent
        is 0 if nothing was rescaled.
    """
    sequences, n, d, _ = matrices.shape
    exponents = [0] * sequences
    if n == 0:
        matrices = np.broadcast_to(np.eye(d, dtype=np.float32), (sequences, 1, d, d))
    while True:
        if not _is_moderate(matrices):
            matrices, removed = _rescale(matrices)
            exponents = [sum(pair) for pair in zip(exponents, removed, strict=True)]
        if matrices.shape[1] == 1:
            return matrices[:, 0], exponents
        for _ in range(_STEPS):
            matrices = _multiply_pairs(matrices)


def to_common_scale(parts: Sequence[Array], exponents: Sequence[int]) -> list[Array]:
    """Return parts of one vector on a common scale: all divided by the same power of two.

    The power is that of the largest part, which therefore neither overflows nor underflows. A far smaller part becomes
    0; in float32 it would not change the vector's direction anyway.

    Args:
        parts: float32 arrays.
        exponents: For each part, the exponent of the power of two to multiply it by.
    """
    largest = max((exponent for part, exponent in zip(parts, exponents, strict=True) if part.any()), default=0)
    return [np.ldexp(part, exponent - largest) for part, exponent in zip(parts, exponents, strict=True)]


def _multiply_pairs(matrices: Array) -> Array:
    """Multiply the matrices in adjacent pairs; if their number is odd, the last three are multiplied together."""
    n = matrices.shape[1]
    if n == 1:
        return matrices
    pairs = matrices[:, 0 : n - 1 : 2] @ matrices[:, 1:n:2]
    if n % 2:
        pairs[:, -1] = pairs[:, -1] @ matrices[:, -1]
    return pairs


def _is_moderate(matrices: Array) -> bool:
    flat = matrices.reshape(-1, 1, matrices.shape[-1] ** 2)
    squares = (flat @ flat.swapaxes(1, 2)).ravel().tolist()
    return bool(min(squares) >= _MIN_SQUARED_NORM and max(squares) <= _MAX_SQUARED_NORM)


def _rescale(matrices: Array) -> tuple[Array, list[int]]:
    """Divide each matrix by the power of two that brings its largest element to between 0.5 and 1.

    Returns:
        The matrices, and the sum of the exponents for each sequence.
    """
    exponents = np.frexp(np.abs(matrices).max(axis=(2, 3)))[1]
    return np.ldexp(matrices, -exponents[:, :, None, None]), exponents.sum(axis=1, dtype=np.int64).tolist()
