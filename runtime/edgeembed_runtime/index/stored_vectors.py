"""The vectors of documents in few bytes, and their exact cosines with a query."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.engine import IndexPrecision
from edgeembed_runtime.index.growing import GrowingRows

# A number's type on disk and in memory. "binary" searches by signs, and scores with what is stored here.
STORED_TYPES: dict[IndexPrecision, str] = {"float32": "<f4", "float16": "<f2", "int8": "|i1", "binary": "<f2"}

# Widened numbers at a time: 512 KiB, which stay in a core's own cache.
_BLOCK_NUMBERS = 1 << 17


class StoredVectors:
    """Vectors as they are stored. Their cosines are exact for what is stored, whatever its lengths became.

    Args:
        stored: (n, dimension) float32, float16 or int8. The scale of a row means nothing.
        lengths: The lengths of the first of them, as far as they are known.
    """

    def __init__(self, stored: GrowingRows, lengths: npt.NDArray[np.float32] | None = None) -> None:
        self._stored = stored
        self._lengths = np.empty(0, dtype=np.float32) if lengths is None else lengths

    @classmethod
    def of(cls, units: npt.NDArray[np.float32], precision: IndexPrecision) -> "StoredVectors":
        """Store vectors in a precision.

        Args:
            units: (n, dimension) float32, of unit length or zero.
            precision: "float32"; "float16", which changes a cosine by about 0.0001, as "binary" does; or "int8",
                which changes it by about 0.001: each row has a scale that takes its largest number to 127.
        """
        return cls(GrowingRows(_narrowed(units, STORED_TYPES[precision])))

    def __len__(self) -> int:
        """Give the number of vectors."""
        return len(self._stored)

    @property
    def rows(self) -> npt.NDArray[Any]:
        """(n, dimension), as they are stored."""
        return self._stored.rows

    @property
    def dimension(self) -> int:
        """The length of a row."""
        return int(self.rows.shape[1])

    def followed_by(self, units: npt.NDArray[np.float32]) -> "StoredVectors":
        """Give these vectors and more behind them, each of unit length or zero."""
        return StoredVectors(self._stored.followed_by(_narrowed(units, self.rows.dtype.str)), self._lengths)

    def kept(self, positions: npt.NDArray[np.intp]) -> "StoredVectors":
        """Give some of the vectors."""
        lengths = self._lengths[positions] if len(self._lengths) == len(self) else None
        return StoredVectors(self._stored.kept(positions), lengths)

    def blocks(self, start: int = 0, numbers: int = _BLOCK_NUMBERS) -> Iterator[slice]:
        """Give slices of rows from `start` to the end, of about as many numbers each as asked for."""
        size = max(1, numbers // self.dimension)
        for first in range(start, len(self), size):
            yield slice(first, min(first + size, len(self)))

    def units(self, rows: slice | npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        """Give some of the vectors as float32 of unit length; those of zeros stay zero.

        Raises:
            InputError: If one of them is not finite.
        """
        wide = _widened(self.rows[rows])
        units: npt.NDArray[np.float32] = wide / _divisors(_lengths(wide))[:, None]
        return units

    def cosines(
        self, query: npt.NDArray[np.float32], positions: npt.NDArray[np.intp] | None = None
    ) -> npt.NDArray[np.float32]:
        """Give the cosine of each vector with a query; of equal vectors they are exactly equal.

        Args:
            query: (dimension,) float32, of unit length or zero.
            positions: Which vectors; None, the default, takes all.

        Returns:
            (positions,) float32, from -1 to 1; 0 for a vector of zeros.

        Raises:
            InputError: If a vector is not finite.
        """
        if positions is None:
            products = np.empty(len(self), dtype=np.float32)
            for block in self.blocks():
                products[block] = _products(_widened(self.rows[block]), query)
            lengths = self._all_lengths()
        else:
            wide = _widened(self.rows[positions])
            products, lengths = _products(wide, query), _lengths(wide)
        cosines: npt.NDArray[np.float32] = np.clip(products / _divisors(lengths), -1, 1)
        return cosines

    def _all_lengths(self) -> npt.NDArray[np.float32]:
        """Give the lengths of all; measured once, for it takes as long as a search."""
        known = self._lengths  # another thread may replace them meanwhile
        missing = [_lengths(_widened(self.rows[block])) for block in self.blocks(start=len(known))]
        if missing:
            self._lengths = known = np.concatenate([known, *missing])
        return known


def _narrowed(units: npt.NDArray[np.float32], stored_type: str) -> npt.NDArray[Any]:
    if stored_type != "|i1":
        same: npt.NDArray[Any] = units.astype(stored_type, copy=False)
        return same
    largest = np.abs(units).max(axis=1, keepdims=True)
    narrowed: npt.NDArray[np.int8] = np.rint(units * (127 / np.where(largest > 0, largest, 1))).astype(np.int8)
    return narrowed


def _widened(stored: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Give float32 of the same value; float16 that is not finite becomes finite."""
    if stored.dtype.itemsize != 2:
        return stored.astype(np.float32, copy=False)
    # The bits of a half, moved to where a float has them, are its value divided by 2 ** 112. Twice as fast as astype.
    bits = stored.view("<i2").astype(np.int32)
    bits <<= 13
    bits &= np.int32(-0x70002000)  # clears the copies of the sign between the sign and the exponent
    wide: npt.NDArray[np.float32] = bits.view(np.float32)
    wide *= np.float32(2.0**112)
    return wide


def _products(wide: npt.NDArray[np.float32], query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    # Not `wide @ query`: BLAS may score two equal rows differently, and then ties depend on their place.
    products: npt.NDArray[np.float32] = np.einsum("ij,j->i", wide, query)
    return products


def _lengths(wide: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        lengths: npt.NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    if not np.isfinite(lengths).all():
        raise InputError("the index holds a vector that is not finite, expected unit length; build the index again")
    return lengths


def _divisors(lengths: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    divisors: npt.NDArray[np.float32] = np.maximum(lengths, np.finfo(np.float32).tiny)
    return divisors
