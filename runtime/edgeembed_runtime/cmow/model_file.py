"""The model file of a CBOW, CMOW or hybrid model: its embedding tables, and checks that its tensors fit together.

docs/tensor-file.md describes the format.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.cmow.packing import TABLE_BITS, byte_values
from edgeembed_runtime.cmow.safetensors import unpack_tensors
from edgeembed_runtime.errors import BundleError

FORMAT = "edgeembed-matrix"
FORMAT_VERSION = "1"
FORWARD, BACKWARD, CBOW, HEAD = "cmow.forward", "cmow.backward", "cbow", "head"

_POOLINGS = ("sum", "mean")
# A matrix of 64 x 64, and a vector of 65,536 components: larger ones could make one text fill the memory.
_MAX_MATRIX_WIDTH, _MAX_VECTOR_WIDTH = 2**12, 2**16
_TYPES = ("float32", "float16", "int8")
_SHOWN = 80  # the maximum number of characters of an untrusted string in a message
_REMEDY = "export the bundle again"

Array = npt.NDArray[np.float32]


class EmbeddingTable(NamedTuple):
    """An embedding table with one row per token of the vocabulary, dequantized only for the tokens of a text.

    Attributes:
        codes: (vocabulary, width), or (vocabulary, rank) if there is a basis; float32, float16 or int8. If they are
            packed, uint8 with several of these values in a byte.
        scale: (vocabulary,) float32, the scale of each row of codes; None means 1.
        basis: (rank, width) float32, the second factor of a low-rank table; None if codes are the rows.
        bias: (width,) float32, added to each row; None means 0.
        byte_values: (256, values per byte) float32, what each byte of packed codes stands for; None if they are not
            packed.
    """

    codes: npt.NDArray[Any]
    scale: npt.NDArray[np.float32] | None = None
    basis: npt.NDArray[np.float32] | None = None
    bias: npt.NDArray[np.float32] | None = None
    byte_values: npt.NDArray[np.float32] | None = None

    @property
    def vocabulary(self) -> int:
        """The vocabulary size."""
        return len(self.codes)

    @property
    def width(self) -> int:
        """The number of columns of a row."""
        if self.basis is not None:
            return int(self.basis.shape[1])
        return int(self.codes.shape[1]) * (1 if self.byte_values is None else self.byte_values.shape[1])

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
        return EmbeddingTable(rows)

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
        codes = self.codes.take(ids, axis=0)
        rows: npt.NDArray[np.float32]
        if self.byte_values is None:
            rows = codes.astype(np.float32, copy=False)
        else:
            rows = self.byte_values.take(codes, axis=0).reshape(len(ids), codes.shape[1] * self.byte_values.shape[1])
        return rows if self.scale is None else rows * self.scale.take(ids)[:, None]


class Head(NamedTuple):
    """A linear layer as it is stored.

    Attributes:
        weight: (dimension, total width of the tables) float32, float16 or int8.
        scale: (dimension,) float32, the scale of each row of an int8 weight; None means 1.
        bias: (dimension,) float32; None means 0.
    """

    weight: npt.NDArray[Any]
    scale: Array | None = None
    bias: Array | None = None

    @property
    def has_bias(self) -> bool:
        """Whether there is a bias other than 0."""
        return self.bias is not None and any(self.bias.tolist())

    def dense(self) -> Array:
        """Return the weight as float32, with the bias as one more column if `has_bias`."""
        if self.scale is None and not self.has_bias:
            return _as_float32(self.weight)
        width = self.weight.shape[1]
        # Each value is written to its place: intermediate arrays would leave holes in the heap.
        dense = np.empty((len(self.weight), width + self.has_bias), dtype=np.float32)
        dense[:, :width] = self.weight
        if self.scale is not None:
            dense[:, :width] *= self.scale[:, None]
        if self.has_bias:
            dense[:, width] = self.bias
        return dense


class CmowModel(NamedTuple):
    """A model that multiplies the matrices of a text's tokens (CMOW), sums their vectors (CBOW), or does both.

    Attributes:
        forward: The matrices that are multiplied in the order of the text; None if there are none.
        backward: The matrices that are multiplied in reverse order; None if there are none.
        cbow: The vectors that are summed; None if there are none.
        is_mean: Whether the sum is divided by the number of tokens.
        head: The linear layer that is applied to the concatenated outputs of the tables; None if there is none.
    """

    forward: EmbeddingTable | None
    backward: EmbeddingTable | None
    cbow: EmbeddingTable | None
    is_mean: bool
    head: Head | None

    @property
    def tables(self) -> list[EmbeddingTable]:
        """The tables that are present, in the order in which their outputs are concatenated."""
        return [table for table in (self.forward, self.backward, self.cbow) if table is not None]


def read_cmow_model(data: bytes, dimension: int, where: str) -> CmowModel:
    """Read a model from the bytes of a tensor file.

    Args:
        data: The whole file.
        dimension: The expected dimension of an embedding.
        where: The file's path, for messages.

    Raises:
        BundleError: If the file is invalid, or the tensors do not fit together.
    """
    file = unpack_tensors(data, where)
    _check_format(file.metadata, where)
    tensors = _Tensors(file.tensors, where, _byte_values(file.metadata, where))
    forward, backward, cbow = tensors.table(FORWARD), tensors.table(BACKWARD), tensors.table(CBOW)
    is_mean = cbow is not None and _choice(file.metadata, "cbow_pooling", _POOLINGS, where) == "mean"
    model = CmowModel(forward, backward, cbow, is_mean, tensors.head())
    tensors.check_all_taken()
    _check_tables(model, file.metadata, where)
    _check_dimension(model, dimension, where)
    return model


class _Tensors:
    """The tensors of a file; each one is taken once, by name."""

    def __init__(self, tensors: dict[str, npt.NDArray[Any]], where: str, byte_values: Array | None) -> None:
        self._remaining = dict(tensors)
        self._where = where
        self._byte_values = byte_values

    def table(self, name: str) -> EmbeddingTable | None:
        if f"{name}.factors" not in self._remaining:
            codes = self._take(f"{name}.weight", (None, None), *self._table_types)
            if codes is None:
                return None
            basis, width = None, self._columns(codes)
        else:
            codes = self._need(f"{name}.factors", (None, None), *self._table_types)
            basis = _as_float32(self._need(f"{name}.basis", (self._columns(codes), None), "float32", "float16"))
            width = basis.shape[1]
        bias = self._take(f"{name}.bias", (width,), "float32", "float16")
        values = self._byte_values if codes.dtype == np.uint8 else None
        return EmbeddingTable(
            codes, self._scale(name, codes), basis, None if bias is None else _as_float32(bias), values
        )

    @property
    def _table_types(self) -> tuple[str, ...]:
        return _TYPES if self._byte_values is None else (*_TYPES, "uint8")

    def _columns(self, codes: npt.NDArray[Any]) -> int:
        per_byte = self._byte_values.shape[1] if self._byte_values is not None and codes.dtype == np.uint8 else 1
        return int(codes.shape[1]) * per_byte

    def head(self) -> Head | None:
        weight = self._take(f"{HEAD}.weight", (None, None), *_TYPES)
        if weight is None:
            return None
        bias = self._take(f"{HEAD}.bias", (weight.shape[0],), "float32", "float16")
        return Head(weight, self._scale(HEAD, weight), None if bias is None else _as_float32(bias))

    def check_all_taken(self) -> None:
        if self._remaining:
            raise BundleError(
                f"{self._where} has the unknown tensor {min(self._remaining)[:_SHOWN]!r}; upgrade edgeembed-runtime "
                f"or {_REMEDY}"
            )

    def _scale(self, name: str, codes: npt.NDArray[Any]) -> Array | None:
        is_quantized = codes.dtype in (np.int8, np.uint8)
        return self._need(f"{name}.scale", (codes.shape[0],), "float32") if is_quantized else None

    def _need(self, name: str, shape: tuple[int | None, ...], *types: str) -> npt.NDArray[Any]:
        tensor = self._take(name, shape, *types)
        if tensor is None:
            raise BundleError(f"{self._where} has no tensor {name!r}, expected one; {_REMEDY}")
        return tensor

    def _take(self, name: str, shape: tuple[int | None, ...], *types: str) -> npt.NDArray[Any] | None:
        tensor = self._remaining.pop(name, None)
        if tensor is None:
            return None
        if types and tensor.dtype.name not in types:
            raise BundleError(f"{self._where}: {name!r} is {tensor.dtype}, expected {' or '.join(types)}; {_REMEDY}")
        fits = len(shape) == tensor.ndim and all(
            want in (None, size) and size > 0 for want, size in zip(shape, tensor.shape, strict=True)
        )
        if not fits:
            expected = ", ".join("any" if size is None else str(size) for size in shape)
            raise BundleError(f"{self._where}: {name!r} has shape {tensor.shape}, expected ({expected}); {_REMEDY}")
        return tensor


def _byte_values(metadata: dict[str, str], where: str) -> Array | None:
    """Return what the bytes of packed tables stand for; None if the file states no `table_bits`."""
    if "table_bits" not in metadata:
        return None
    return byte_values(int(_choice(metadata, "table_bits", tuple(map(str, TABLE_BITS)), where)))


def _as_float32(array: npt.NDArray[Any]) -> Array:
    return array.astype(np.float32, copy=False)


def _check_format(metadata: dict[str, str], where: str) -> None:
    if metadata.get("format") != FORMAT:
        raise BundleError(f"{where} is not a CBOW, CMOW or hybrid model: its format is not {FORMAT!r}; {_REMEDY}")
    if (version := metadata.get("format_version", "")[:_SHOWN]) != FORMAT_VERSION:
        raise BundleError(
            f"{where} has format version {version!r}, expected {FORMAT_VERSION!r}; upgrade edgeembed-runtime"
        )


def _choice(metadata: dict[str, str], name: str, choices: tuple[str, ...], where: str) -> str:
    if (value := metadata.get(name, "")[:_SHOWN]) not in choices:
        raise BundleError(f"{where}: {name!r} is {value!r}, expected one of {', '.join(choices)}; {_REMEDY}")
    return value


def _check_tables(model: CmowModel, metadata: dict[str, str], where: str) -> None:
    architectures = {(True, False): "cmow", (False, True): "cbow", (True, True): "hybrid"}
    architecture = _choice(metadata, "architecture", tuple(architectures.values()), where)
    is_cmow = model.forward is not None or model.backward is not None
    if architectures.get((is_cmow, model.cbow is not None)) != architecture:
        raise BundleError(
            f"{where} is {architecture!r} but does not contain the tables of that architecture; {_REMEDY}"
        )
    if len({table.vocabulary for table in model.tables}) > 1:
        raise BundleError(f"{where} has tables of different vocabulary sizes, expected one size; {_REMEDY}")
    matrices = {table.width for table in (model.forward, model.backward) if table is not None}
    if len(matrices) > 1 or any(math.isqrt(width) ** 2 != width for width in matrices):
        raise BundleError(
            f"{where} has matrices of {sorted(matrices)} elements, expected one square number for all; {_REMEDY}"
        )
    _check_widths(model, where)


def _check_widths(model: CmowModel, where: str) -> None:
    limits = {"forward": _MAX_MATRIX_WIDTH, "backward": _MAX_MATRIX_WIDTH, "cbow": _MAX_VECTOR_WIDTH}
    for name, limit in limits.items():
        table = getattr(model, name)
        if table is not None and table.width > limit:
            raise BundleError(f"{where} has rows of width {table.width}, expected at most {limit}; {_REMEDY}")


def _check_dimension(model: CmowModel, dimension: int, where: str) -> None:
    width = sum(table.width for table in model.tables)
    if model.head is not None and model.head.weight.shape[1] != width:
        raise BundleError(
            f"{where} has a head of input dimension {model.head.weight.shape[1]}, expected {width}; {_REMEDY}"
        )
    actual = width if model.head is None else model.head.weight.shape[0]
    if actual != dimension:
        raise BundleError(f"{where} returns embeddings of dimension {actual}, expected {dimension}; {_REMEDY}")
