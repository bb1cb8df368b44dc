"""Stored vectors of an index in a compact precision, and their exact cosine similarity to a query."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.engine import IndexPrecision
from edgeembed_runtime.similarity import normalize

# The dtype of each precision on disk and in memory. "binary" finds candidates by sign bits and scores them in float16.
STORED_DTYPES: dict[IndexPrecision, str] = {"float32": "<f4", "float16": "<f2", "int8": "|i1", "binary": "<f2"}

# Elements that are converted to float32 at a time: 512 KiB, which fits in the L2 cache of a core.
_BLOCK_ELEMENTS = 1 << 17


class GrowingArray:
    """An array that grows along its first axis in amortized constant time per row.

    Instances are immutable: `append` returns a new one that shares the buffer. Append only to the newest one, or two
    instances write to the same part of the buffer.

    Args:
        buffer: (at least count, ...), of which the first `count` rows are in use.
        count: The number of rows in use; None means all.
    """

    def __init__(self, buffer: npt.NDArray[Any], count: int | None = None) -> None:
        self._buffer = buffer
        self._count = len(buffer) if count is None else count

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    @property
    def rows(self) -> npt.NDArray[Any]:
        """The rows, (count, ...)."""
        return self._buffer[: self._count]

    def append(self, rows: npt.NDArray[Any]) -> "GrowingArray":
        """Return an array with more rows at the end.

        Args:
            rows: (n, ...), of the same dtype.
        """
        grown, added = self.extend(len(rows))
        added[...] = rows
        return grown

    def extend(self, added: int) -> "tuple[GrowingArray, npt.NDArray[Any]]":
        """Return an array with more rows at the end, and a view of these rows, which the caller fills."""
        count = self._count + added
        buffer = self._buffer
        if count > len(buffer):
            buffer = np.empty((max(count, 2 * self._count), *buffer.shape[1:]), dtype=buffer.dtype)
            buffer[: self._count] = self.rows
        return GrowingArray(buffer, count), buffer[self._count : count]

    def select(self, positions: npt.NDArray[np.intp], spare: int = 0) -> "GrowingArray":
        """Return a copy of some of the rows, with room for `spare` more."""
        buffer = np.empty((len(positions) + spare, *self._buffer.shape[1:]), dtype=self._buffer.dtype)
        # With the mode "raise", `take` would fill another array first.
        np.take(self.rows, positions, axis=0, out=buffer[: len(positions)], mode="clip")
        return GrowingArray(buffer, len(positions))

    def __reduce__(self) -> "tuple[Any, ...]":
        """Support pickling, without the unused rows."""
        return GrowingArray, (self.rows,)


class StoredVectors:
    """Vectors in a compact precision. Their scale is irrelevant: similarities divide by each vector's norm.

    Args:
        stored: (n, dimension) float32, float16 or int8.
        norms: The norms of the first rows, as far as they are known.
    """

    def __init__(self, stored: GrowingArray, norms: npt.NDArray[np.float32] | None = None) -> None:
        self._stored = stored
        self._norms = np.empty(0, dtype=np.float32) if norms is None else norms

    @classmethod
    def quantize(cls, vectors: npt.NDArray[Any], precision: IndexPrecision) -> "StoredVectors":
        """Return vectors stored in a precision.

        Args:
            vectors: (n, dimension), of any norm, finite.
            precision: "float32"; "float16" or "binary", which change a cosine by about 0.0001; or "int8", symmetric
                with one scale per row, which changes a cosine by about 0.001.
        """
        return cls.empty(vectors.shape[1], precision).append(vectors)

    @classmethod
    def empty(cls, dimension: int, precision: IndexPrecision) -> "StoredVectors":
        """Return no vectors, to which vectors of a dimension can be appended."""
        return cls(GrowingArray(np.empty((0, dimension), dtype=STORED_DTYPES[precision])))

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self._stored)

    @property
    def rows(self) -> npt.NDArray[Any]:
        """The vectors as they are stored, (n, dimension)."""
        return self._stored.rows

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return int(self.rows.shape[1])

    def append(self, vectors: npt.NDArray[Any]) -> "StoredVectors":
        """Return these vectors and more, which are L2-normalized and converted block by block.

        Args:
            vectors: (n, dimension), of any norm, finite.
        """
        stored, added = self._stored.extend(len(vectors))
        for block in row_blocks(vectors):
            added[block] = _quantize(normalize(vectors[block]), added.dtype.str)
        return StoredVectors(stored, self._norms)

    def select(self, positions: npt.NDArray[np.intp], spare: int = 0) -> "StoredVectors":
        """Return a copy of some of the vectors, with room for `spare` more."""
        norms = self._norms[positions] if len(self._norms) == len(self) else None
        return StoredVectors(self._stored.select(positions, spare), norms)

    def blocks(self, start: int = 0, elements: int = _BLOCK_ELEMENTS) -> Iterator[slice]:
        """Yield slices of rows from `start` to the end, each with about the given number of elements."""
        return row_blocks(self.rows, start, elements)

    def normalized(self, rows: slice | npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        """Return some of the vectors as L2-normalized float32; zero vectors stay zero.

        Raises:
            InputError: If a vector is not finite.
        """
        vectors = _to_float32(self.rows[rows])
        _row_norms(vectors)
        return normalize(vectors)

    def cosine_similarity(
        self, query: npt.NDArray[np.float32], positions: npt.NDArray[np.intp] | None = None
    ) -> npt.NDArray[np.float32]:
        """Return the cosine similarity of each vector with a query, or with each of several queries.

        Equal vectors have exactly equal similarities, which do not depend on the other queries, and norms are computed
        once, which `similarity.cosine_similarity` does not offer.

        Args:
            query: (dimension,) or (queries, dimension) float32, L2-normalized or zero.
            positions: The positions of the vectors to compare; None means all.

        Returns:
            (n,) or (queries, n) float32, from -1 to 1; -1, the lowest score, for a zero vector, which stands for a text
            that has no meaning.

        Raises:
            InputError: If a vector is not finite.
        """
        queries = np.atleast_2d(query)
        count = len(self) if positions is None else len(positions)
        cosines = np.empty((len(queries), count), dtype=np.float32)
        norms = self._all_norms() if positions is None else None
        for block in row_blocks(self.rows if positions is None else positions, width=self.dimension):
            vectors = _to_float32(self.rows[block if positions is None else positions[block]])
            lengths = _row_norms(vectors) if norms is None else norms[block]
            divisors = np.maximum(lengths, np.finfo(np.float32).tiny)
            for row, one in zip(cosines, queries, strict=True):
                np.clip(_dot(vectors, one) / divisors, -1, 1, out=row[block])
            cosines[:, block][:, lengths == 0] = -1
        return cosines if query.ndim == 2 else cosines[0]

    def _all_norms(self) -> npt.NDArray[np.float32]:
        """Return the norms of all vectors, computed once: they take as long as a search."""
        known = self._norms  # another thread may replace the attribute meanwhile
        missing = [_row_norms(_to_float32(self.rows[block])) for block in self.blocks(start=len(known))]
        if missing:
            self._norms = known = np.concatenate([known, *missing])
        return known


def row_blocks(
    rows: npt.NDArray[Any], start: int = 0, elements: int = _BLOCK_ELEMENTS, width: int | None = None
) -> Iterator[slice]:
    """Yield slices of rows from `start` to the end, each with about the given number of elements.

    Args:
        rows: (n, width).
        start: The first row.
        elements: The number of elements.
        width: The number of elements of a row; None means that of `rows`.
    """
    size = max(1, elements // (rows.shape[1] if width is None else width))
    for first in range(start, len(rows), size):
        yield slice(first, min(first + size, len(rows)))


def _quantize(vectors: npt.NDArray[np.float32], dtype: str) -> npt.NDArray[Any]:
    if dtype != "|i1":
        converted: npt.NDArray[Any] = vectors.astype(dtype, copy=False)
        return converted
    maxima = np.abs(vectors).max(axis=1, keepdims=True)
    quantized: npt.NDArray[np.int8] = np.rint(vectors * (127 / np.where(maxima > 0, maxima, 1))).astype(np.int8)
    return quantized


def _to_float32(stored: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Convert stored values to float32; NaN and infinity in float16 become finite values."""
    if stored.dtype.itemsize != 2:
        return stored.astype(np.float32, copy=False)
    # The bits of a float16, shifted to their place in a float32, are its value divided by 2 ** 112. This is twice as
    # fast as astype.
    bits = stored.view("<i2").astype(np.int32)
    bits <<= 13
    bits &= np.int32(-0x70002000)  # clears the copies of the sign bit between sign and exponent
    converted: npt.NDArray[np.float32] = bits.view(np.float32)
    converted *= np.float32(2.0**112)
    return converted


def _dot(vectors: npt.NDArray[np.float32], query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    # Not `vectors @ query`: BLAS may return different results for equal rows, so that ties would not keep their order.
    products: npt.NDArray[np.float32] = np.einsum("ij,j->i", vectors, query)
    return products


def _row_norms(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the L2 norm of each row; raise InputError if one is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        norms: npt.NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    if not np.isfinite(norms).all():
        raise InputError("the index holds a vector that is not finite, expected unit length; build the index again")
    return norms
