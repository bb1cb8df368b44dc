"""The product of a text's matrices: in O(log n) steps, and of any size."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

# Between two looks at their size, at most 8 + 7 matrices are multiplied. If none has a norm above 2**7 or below
# 2**-7, their product stays below 2**105, and what float32 cannot hold (less than 2**-126) is no part of it. Those
# that were divided may have a norm of d, at most 2**8, and so a product of 2**120; float32 ends at 2**128.
_STEPS = 3
_LEAST, _MOST = 2.0**-14, 2.0**14  # squares of norms


def chain_matmul(matrices: Array) -> tuple[Array, list[int]]:
    """Give the products of sequences of matrices, however large or small they are.

    Neighbours are multiplied, all pairs at once, until one matrix is left. Matrices that leave a moderate range on
    the way are divided by a power of two, which is exact, and the powers are added up.

    Args:
        matrices: (sequences, n, d, d) float32. The product of no matrices is the identity.

    Returns:
        (sequences, d, d) float32, and for each an exponent: the product is the matrix times 2**exponent. It is 0
        where nothing had to be divided.
    """
    sequences, n, d, _ = matrices.shape
    exponents = [0] * sequences
    if n == 0:
        matrices = np.broadcast_to(np.eye(d, dtype=np.float32), (sequences, 1, d, d))
    while True:
        if not _is_moderate(matrices):
            matrices, removed = _rescaled(matrices)
            exponents = [sum(pair) for pair in zip(exponents, removed, strict=True)]
        if matrices.shape[1] == 1:
            return matrices[:, 0], exponents
        for _ in range(_STEPS):
            matrices = _halved(matrices)


def on_one_scale(parts: Sequence[Array], exponents: Sequence[int]) -> list[Array]:
    """Give parts of one vector on one scale: all divided by the same power of two.

    The power is that of the largest part, so that it neither overflows nor vanishes; a part that is far smaller
    becomes 0, as it would beside the largest in any float32 vector.

    Args:
        parts: float32 arrays.
        exponents: Of each, the power of two that it is to be multiplied by.
    """
    largest = max((exponent for part, exponent in zip(parts, exponents, strict=True) if part.any()), default=0)
    return [np.ldexp(part, exponent - largest) for part, exponent in zip(parts, exponents, strict=True)]


def _halved(matrices: Array) -> Array:
    """Multiply each matrix with its right neighbour; an odd one at the end joins the last pair."""
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
    return bool(min(squares) >= _LEAST and max(squares) <= _MOST)


def _rescaled(matrices: Array) -> tuple[Array, list[int]]:
    """Divide each matrix by the power of two that brings its largest number to between 0.5 and 1.

    Returns:
        The matrices, and for each sequence the sum of the powers' exponents.
    """
    exponents = np.frexp(np.abs(matrices).max(axis=(2, 3)))[1]
    return np.ldexp(matrices, -exponents[:, :, None, None]), exponents.sum(axis=1, dtype=np.int64).tolist()
