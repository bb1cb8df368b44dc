"""Run a CBOW, CMOW or hybrid model with NumPy."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.cmow.model_file import CmowModel, Head, read_cmow_model
from edgeembed_runtime.errors import BundleError

Array = npt.NDArray[np.float32]

_ONE = np.ones(1, dtype=np.float32)
_MAX_DENSE_BYTES = 32 * 2**20  # dense matrices are 25 % faster, which is worth this much memory
# Between two checks of the norms, at most 8 + 7 matrices are multiplied. If none has a norm above 2**7 or below
# 2**-7, their product stays below 2**105, and terms that float32 cannot hold (below 2**-126) do not contribute.
# Rescaled matrices may have a norm of d, at most 2**8, and so a product of 2**120; float32 ends at 2**128.
_STEPS = 3
_MIN_SQUARED_NORM, _MAX_SQUARED_NORM = 2.0**-14, 2.0**14


class NumpyBackend:
    """A loaded CBOW, CMOW or hybrid model. Threads may share it.

    Args:
        data: The bytes of the tensor file (docs/tensor-file.md). Embedding tables are views of them; only low-rank
            matrices are multiplied out, if that takes at most 32 MiB.
        dimension: The dimension of an embedding.
        where: The file's path, for messages.

    Raises:
        BundleError: If the file is invalid, or its embeddings have another dimension.
    """

    def __init__(self, data: bytes, dimension: int, where: str) -> None:
        # Weights that are not finite result in embeddings that are not finite, which the pipeline rejects.
        with np.errstate(all="ignore"):
            model = _with_dense_matrices(_with_folded_basis(read_cmow_model(data, dimension, where)))
            self._head = None if model.head is None else model.head.dense()
        self._has_bias = model.head is not None and model.head.has_bias
        self._where = where
        self._matrices = [table for table in (model.forward, model.backward) if table is not None]
        self._orders = [step for table, step in ((model.forward, 1), (model.backward, -1)) if table is not None]
        self._matrix_dim = math.isqrt(self._matrices[0].width) if self._matrices else 0
        self._cbow, self._is_mean = model.cbow, model.is_mean
        self._vocabulary = model.tables[0].vocabulary

    def run(self, token_ids: Sequence[int]) -> Array:
        """Return the embedding of one text.

        Args:
            token_ids: The token ids of the text. If there are none, a matrix product is the identity, and a sum or mean
                is 0.

        Returns:
            (dimension,) float32, normalized; zeros if the model's output is zero, for example that of CBOW without
            tokens and without a bias. It is not finite if the weights of these tokens are not finite.

        Raises:
            BundleError: If a token id is outside the vocabulary.
        """
        self._check(token_ids)
        ids = np.array(token_ids, dtype=np.intp)
        with np.errstate(all="ignore"):
            parts, exponents = self._parts(ids)
            features = np.concatenate(_to_common_scale(parts, exponents) if any(exponents) else parts)
            return _normalize(features if self._head is None else self._head @ features)

    def _check(self, token_ids: Sequence[int]) -> None:
        lowest, highest = min(token_ids, default=0), max(token_ids, default=0)
        if lowest < 0 or highest >= self._vocabulary:
            raise BundleError(
                f"{self._where} has no row for token {lowest if lowest < 0 else highest}, expected 0 to "
                f"{self._vocabulary - 1}: the tokenizer belongs to another model; export the bundle again"
            )

    def _parts(self, ids: npt.NDArray[np.intp]) -> tuple[list[Array], list[int]]:
        """Return the features to concatenate, and the exponent of the power of two that scales each part."""
        parts: list[Array] = []
        exponents: list[int] = []
        if self._matrices:
            products, exponents = self._products(ids)
            parts = [product.ravel() for product in products]
        if self._cbow is not None:
            total = self._cbow.total(ids)
            parts.append(total / np.float32(max(len(ids), 1)) if self._is_mean else total)
            exponents.append(0)
        if self._has_bias:
            parts.append(_ONE)
            exponents.append(0)
        return parts, exponents

    def _products(self, ids: npt.NDArray[np.intp]) -> tuple[Array, list[int]]:
        matrices = np.empty((len(self._matrices), len(ids), self._matrix_dim**2), dtype=np.float32)
        for rows, table, step in zip(matrices, self._matrices, self._orders, strict=True):
            rows[:] = table.rows(ids[::step])
        return _chain_matmul(matrices.reshape(*matrices.shape[:2], self._matrix_dim, self._matrix_dim))


def _with_folded_basis(model: CmowModel) -> CmowModel:
    """Multiply the basis of low-rank CBOW vectors into the head, once for all texts."""
    head, cbow = model.head, model.cbow
    if head is None or cbow is None or cbow.basis is None or cbow.bias is not None or len(cbow.basis) > cbow.width:
        return model
    weight = head._replace(bias=None).dense()
    before = weight.shape[1] - cbow.width
    folded = np.hstack([weight[:, :before], weight[:, before:] @ cbow.basis.T])
    return model._replace(cbow=cbow._replace(basis=None), head=Head(folded, bias=head.bias))


def _with_dense_matrices(model: CmowModel) -> CmowModel:
    """Multiply out low-rank matrices, once for all texts, if that takes little memory."""
    tables = [table for table in (model.forward, model.backward) if table is not None]
    size_bytes = sum(4 * table.vocabulary * table.width for table in tables)
    if all(table.basis is None for table in tables) or size_bytes > _MAX_DENSE_BYTES:
        return model
    return model._replace(
        forward=model.forward and model.forward.dense(),
        backward=model.backward and model.backward.dense(),
    )


def _normalize(vector: Array) -> Array:
    # Also in float64, but faster for a single vector than similarity.normalize.
    wide = vector.astype(np.float64)
    norm = math.sqrt(wide.dot(wide))
    return (wide / norm).astype(np.float32) if norm else vector


def _chain_matmul(matrices: Array) -> tuple[Array, list[int]]:
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


def _to_common_scale(parts: Sequence[Array], exponents: Sequence[int]) -> list[Array]:
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
