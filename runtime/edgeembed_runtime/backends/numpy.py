"""Run a CBOW, CMOW or hybrid model with NumPy."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.cmow.matrix_chain import chain_matmul, to_common_scale
from edgeembed_runtime.cmow.model_file import CmowModel, read_cmow_model
from edgeembed_runtime.errors import BundleError

Array = npt.NDArray[np.float32]

_ONE = np.ones(1, dtype=np.float32)
_MAX_DENSE_BYTES = 32 * 2**20  # dense matrices are a quarter faster, which is worth at most this much memory


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
        # Weights that are not finite make embeddings that are not finite, which the pipeline refuses.
        with np.errstate(all="ignore"):
            student = _with_dense_matrices(_with_folded_basis(read_cmow_model(data, dimension, where)))
            self._head, self._has_bias = _with_bias(student)
        self._where = where
        self._matrices = [table for table in (student.forward, student.backward) if table is not None]
        self._orders = [step for table, step in ((student.forward, 1), (student.backward, -1)) if table is not None]
        self._matrix_dim = math.isqrt(self._matrices[0].width) if self._matrices else 0
        self._cbow, self._is_mean = student.cbow, student.is_mean
        self._vocabulary = student.tables[0].vocabulary

    def embed(self, token_ids: Sequence[int]) -> Array:
        """Return the embedding of one text.

        Args:
            token_ids: The token ids of the text. Without any, a matrix product is the identity, and a sum or mean is 0.

        Returns:
            (dimension,) float32, normalized; zeros if the model's output is zero, as for CBOW without tokens and
            without a head's bias. It is not finite if the weights of these tokens are not.

        Raises:
            BundleError: If a token id is outside the vocabulary.
        """
        self._check(token_ids)
        ids = np.array(token_ids, dtype=np.intp)
        with np.errstate(all="ignore"):
            parts, exponents = self._parts(ids)
            features = np.concatenate(to_common_scale(parts, exponents) if any(exponents) else parts)
            return _normalize(features if self._head is None else self._head @ features)

    def _check(self, token_ids: Sequence[int]) -> None:
        least, most = min(token_ids, default=0), max(token_ids, default=0)
        if least < 0 or most >= self._vocabulary:
            raise BundleError(
                f"{self._where} has no row for token {least if least < 0 else most}, expected 0 to "
                f"{self._vocabulary - 1}: its tokenizer belongs to another model; export the bundle again"
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
        return chain_matmul(matrices.reshape(*matrices.shape[:2], self._matrix_dim, self._matrix_dim))


def _with_folded_basis(student: CmowModel) -> CmowModel:
    """Multiply the basis of low-rank CBOW vectors into the head, once for all texts."""
    head, cbow = student.head, student.cbow
    if head is None or cbow is None or cbow.basis is None or cbow.bias is not None or len(cbow.basis) > cbow.width:
        return student
    before = head.shape[1] - cbow.width
    folded = np.hstack([head[:, :before], head[:, before:] @ cbow.basis.T])
    return replace(student, cbow=replace(cbow, basis=None), head=folded)


def _with_dense_matrices(student: CmowModel) -> CmowModel:
    """Multiply out low-rank matrices, once for all texts, if that takes little memory."""
    tables = [table for table in (student.forward, student.backward) if table is not None]
    size_bytes = sum(4 * table.vocabulary * table.width for table in tables)
    if all(table.basis is None for table in tables) or size_bytes > _MAX_DENSE_BYTES:
        return student
    return replace(
        student,
        forward=student.forward and student.forward.dense(),
        backward=student.backward and student.backward.dense(),
    )


def _with_bias(student: CmowModel) -> tuple[Array | None, bool]:
    """Return the head with its bias as another column, whose input is 1, so that both share one scale."""
    if student.head is None or student.head_bias is None or not student.head_bias.any():
        return student.head, False
    return np.hstack([student.head, student.head_bias[:, None]]), True


def _normalize(vector: Array) -> Array:
    # Faster for a single vector than similarity.normalize, and equally in float64.
    wide = vector.astype(np.float64)
    norm = math.sqrt(wide.dot(wide))
    return (wide / norm).astype(np.float32) if norm else vector
