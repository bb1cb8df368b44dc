"""Embedding tables, quantized or low-rank, dequantized only for the tokens of a text."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class EmbeddingTable:
    """An embedding table with one row per token of the vocabulary.

    Attributes:
        codes: (vocabulary, width), or (vocabulary, rank) if there is a basis; float32, float16 or int8.
        scale: (vocabulary,) float32, the scale of each row of codes; None means 1.
        basis: (rank, width) float32, the second factor of a low-rank table; None if codes are the rows.
        bias: (width,) float32, added to each row; None means 0.
    """

    codes: npt.NDArray[Any]
    scale: npt.NDArray[np.float32] | None = None
    basis: npt.NDArray[np.float32] | None = None
    bias: npt.NDArray[np.float32] | None = None

    @property
    def vocabulary(self) -> int:
        """The vocabulary size."""
        return len(self.codes)

    @property
    def width(self) -> int:
        """The number of columns of a row."""
        return int((self.codes if self.basis is None else self.basis).shape[1])

    def rows(self, ids: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        """Return the rows of token ids.

        Args:
            ids: (tokens,), each below `vocabulary`.

        Returns:
            (tokens, width) float32.
        """
        rows = self._coordinates(ids)
        if self.basis is not None:
            rows = rows @ self.basis
        return rows if self.bias is None else rows + self.bias

    def dense(self) -> "EmbeddingTable":
        """Return the same table as float32 rows, without scale, basis and bias."""
        rows = self.rows(np.arange(self.vocabulary, dtype=np.intp))
        return replace(self, codes=rows, scale=None, basis=None, bias=None)

    def total(self, ids: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        """Return the sum of the rows of token ids; zeros if there are none.

        Args:
            ids: (tokens,), each below `vocabulary`.

        Returns:
            (width,) float32.
        """
        # Summed before the basis and the bias are applied: one matmul per text instead of one per token.
        total: npt.NDArray[np.float32] = np.add.reduce(self._coordinates(ids))
        if self.basis is not None:
            total = total @ self.basis
        return total if self.bias is None else total + len(ids) * self.bias

    def _coordinates(self, ids: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        rows: npt.NDArray[np.float32] = self.codes.take(ids, axis=0).astype(np.float32, copy=False)
        return rows if self.scale is None else rows * self.scale.take(ids)[:, None]
