"""A matrix student (CBOW, CMOW or both) in NumPy alone."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.cmow.matrix_chain import chain_matmul, on_one_scale
from edgeembed_runtime.cmow.model_file import CmowModel, read_cmow_model
from edgeembed_runtime.errors import BundleError

Array = npt.NDArray[np.float32]

_ONE = np.ones(1, dtype=np.float32)
_WIDE_BYTES = 32 * 2**20  # a quarter less time a text is worth so much memory, and no more


class NumpyBackend:
    """A matrix student's tables. Threads may share one.

    Args:
        data: The bytes of the tensor file; docs/tensor-file.md describes it. Tables stay in them, as they are, but for
            matrices of low rank, which are multiplied out where that takes no more than 32 MiB.
        dimension: The length of a vector.
        where: What to call the file in messages.

    Raises:
        BundleError: If these are no such bytes, or give vectors of another length.
    """

    def __init__(self, data: bytes, dimension: int, where: str) -> None:
        # Weights that are not finite show in the vectors, which are checked; to warn of them as well helps nobody.
        with np.errstate(all="ignore"):
            student = _widened(_folded(read_cmow_model(data, dimension, where)))
            self._head, self._has_bias = _with_bias(student)
        self._where = where
        self._matrices = [table for table in (student.forward, student.backward) if table is not None]
        self._orders = [step for table, step in ((student.forward, 1), (student.backward, -1)) if table is not None]
        self._side = math.isqrt(self._matrices[0].width) if self._matrices else 0
        self._cbow, self._takes_mean = student.cbow, student.takes_mean
        self._vocabulary = student.tables[0].vocabulary

    def embed(self, token_ids: Sequence[int]) -> Array:
        """Give the vector of one text.

        Args:
            token_ids: The text's tokens. There may be none: a product is then the identity, a sum or mean 0.

        Returns:
            (dimension,) float32 of unit length; of zeros where the student gives nothing but zeros, as CBOW without
            a head's bias does for no tokens. It is not finite if the weights of these tokens are not.

        Raises:
            BundleError: If the tables have no row for a token.
        """
        self._check(token_ids)
        ids = np.array(token_ids, dtype=np.intp)
        with np.errstate(all="ignore"):
            parts, exponents = self._parts(ids)
            features = np.concatenate(on_one_scale(parts, exponents) if any(exponents) else parts)
            return _unit(features if self._head is None else self._head @ features)

    def _check(self, token_ids: Sequence[int]) -> None:
        least, most = min(token_ids, default=0), max(token_ids, default=0)
        if least < 0 or most >= self._vocabulary:
            raise BundleError(
                f"{self._where} has no row for token {least if least < 0 else most}, expected 0 to "
                f"{self._vocabulary - 1}: its tokenizer is another student's; export the bundle again"
            )

    def _parts(self, ids: npt.NDArray[np.intp]) -> tuple[list[Array], list[int]]:
        """Give what is concatenated, and by which power of two each part is to be multiplied."""
        parts: list[Array] = []
        exponents: list[int] = []
        if self._matrices:
            products, exponents = self._products(ids)
            parts = [product.ravel() for product in products]
        if self._cbow is not None:
            total = self._cbow.total(ids)
            parts.append(total / np.float32(max(len(ids), 1)) if self._takes_mean else total)
            exponents.append(0)
        if self._has_bias:
            parts.append(_ONE)
            exponents.append(0)
        return parts, exponents

    def _products(self, ids: npt.NDArray[np.intp]) -> tuple[Array, list[int]]:
        matrices = np.empty((len(self._matrices), len(ids), self._side**2), dtype=np.float32)
        for rows, table, step in zip(matrices, self._matrices, self._orders, strict=True):
            rows[:] = table.rows(ids[::step])
        return chain_matmul(matrices.reshape(*matrices.shape[:2], self._side, self._side))


def _folded(student: CmowModel) -> CmowModel:
    """Multiply the basis of vectors that are added up into the head, once for all texts."""
    head, cbow = student.head, student.cbow
    if head is None or cbow is None or cbow.basis is None or cbow.bias is not None or len(cbow.basis) > cbow.width:
        return student
    before = head.shape[1] - cbow.width
    folded = np.hstack([head[:, :before], head[:, before:] @ cbow.basis.T])
    return replace(student, cbow=replace(cbow, basis=None), head=folded)


def _widened(student: CmowModel) -> CmowModel:
    """Multiply matrices of low rank out, once for all texts, where that takes little memory."""
    tables = [table for table in (student.forward, student.backward) if table is not None]
    size_bytes = sum(4 * table.vocabulary * table.width for table in tables)
    if all(table.basis is None for table in tables) or size_bytes > _WIDE_BYTES:
        return student
    return replace(
        student,
        forward=student.forward and student.forward.widened(),
        backward=student.backward and student.backward.widened(),
    )


def _with_bias(student: CmowModel) -> tuple[Array | None, bool]:
    """Give the head with its bias as one more column, whose input is 1, so that both share one scale."""
    if student.head is None or student.head_bias is None or not student.head_bias.any():
        return student.head, False
    return np.hstack([student.head, student.head_bias[:, None]]), True


def _unit(vector: Array) -> Array:
    wide = vector.astype(np.float64)  # in which no square of a float32 is lost
    length = math.sqrt(wide.dot(wide))
    return (wide / length).astype(np.float32) if length else vector
