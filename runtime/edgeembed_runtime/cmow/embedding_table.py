"""A row of numbers for each token: stored in few bytes, widened only for the tokens of a text."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Table:
    """Rows of one width, one for each token of a vocabulary.

    Attributes:
        codes: (vocabulary, width), or (vocabulary, rank) where there is a basis; float32, float16 or int8.
        scale: (vocabulary,) float32: what a row of codes is multiplied by; None where it is 1.
        basis: (rank, width) float32: what a row of codes is multiplied with, as a matrix; None where codes are rows.
        bias: (width,) float32: what is added to each row; None where it is 0.
    """

    codes: npt.NDArray[Any]
    scale: npt.NDArray[np.float32] | None = None
    basis: npt.NDArray[np.float32] | None = None
    bias: npt.NDArray[np.float32] | None = None

    @property
    def vocabulary(self) -> int:
        """For how many tokens there is a row."""
        return len(self.codes)

    @property
    def width(self) -> int:
        """The length of a row."""
        return int((self.codes if self.basis is None else self.basis).shape[1])

    def rows(self, ids: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        """Give the rows of a text's tokens.

        Args:
            ids: (tokens,), each below `vocabulary`.

        Returns:
            (tokens, width) float32.
        """
        rows = self._coordinates(ids)
        if self.basis is not None:
            rows = rows @ self.basis
        return rows if self.bias is None else rows + self.bias

    def widened(self) -> "Table":
        """Give the same table as rows that nothing remains to be done to."""
        rows = self.rows(np.arange(self.vocabulary, dtype=np.intp))
        return replace(self, codes=rows, scale=None, basis=None, bias=None)

    def total(self, ids: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        """Give the sum of the rows of a text's tokens; of no tokens it is 0.

        Args:
            ids: (tokens,), each below `vocabulary`.

        Returns:
            (width,) float32.
        """
        # Summed before the basis and the bias: one product for the text in place of one for each token.
        total: npt.NDArray[np.float32] = np.add.reduce(self._coordinates(ids))
        if self.basis is not None:
            total = total @ self.basis
        return total if self.bias is None else total + len(ids) * self.bias

    def _coordinates(self, ids: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        widened: npt.NDArray[np.float32] = self.codes.take(ids, axis=0).astype(np.float32, copy=False)
        return widened if self.scale is None else widened * self.scale.take(ids)[:, None]
