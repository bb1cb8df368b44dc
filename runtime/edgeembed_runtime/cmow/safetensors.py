"""Read untrusted safetensors bytes without copying, and write them."""

import itertools
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import BundleError, InputError

_DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_METADATA = "__metadata__"
_LENGTH_BYTES = 8
# A header of this size describes thousands of tensors; parsing a larger one would take too much memory.
_MAX_HEADER_BYTES = 2**20
_MAX_AXES = 8
_TOO_LARGE = 2**53
_REMEDY = "export the bundle again"


class TensorFile(NamedTuple):
    """The content of a safetensors file.

    Attributes:
        tensors: Arrays by name, read-only views of the file's bytes (copies if they are not aligned).
        metadata: Strings by name.
    """

    tensors: dict[str, npt.NDArray[Any]]
    metadata: dict[str, str]


def unpack_tensors(data: bytes, where: str) -> TensorFile:
    """Return the tensors and the metadata in the bytes of a safetensors file.

    Args:
        data: The whole file: the header's length as eight little-endian bytes, the header as JSON, the tensors.
        where: The file's path, for messages.

    Raises:
        BundleError: If the file is invalid, the tensors leave gaps or overlap, or one is of another
            type than float32, float16, int8 and uint8.
    """
    header, start = _header(data, where)
    metadata = _metadata(header.pop(_METADATA, {}), where)
    entries = {name: _Entry.parse(entry, f"{where}: tensor {name[:80]!r}") for name, entry in header.items()}
    _check_cover(entries.values(), len(data) - start, where)
    return TensorFile({name: entry.view(data, start) for name, entry in entries.items()}, metadata)


def pack_tensors(tensors: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """Return the bytes of a safetensors file.

    Args:
        tensors: Arrays of float32, float16, int8 or uint8 by name.
        metadata: Strings by name.

    Raises:
        InputError: If an array has another type.
    """
    for name, array in tensors.items():
        if array.dtype not in _NAMES:
            raise InputError(f"tensor {name!r} is {array.dtype}, expected float32, float16, int8 or uint8; convert it")
    # The largest item sizes first, so that each array is aligned.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
    ends = list(itertools.accumulate((array.nbytes for _, array in ordered), initial=0))
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    for (name, array), begin, end in zip(ordered, ends, ends[1:], strict=False):
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)
    return b"".join([len(text).to_bytes(_LENGTH_BYTES, "little"), text, *(array.tobytes() for _, array in ordered)])


class _Entry(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int

    @classmethod
    def parse(cls, entry: object, where: str) -> "_Entry":
        if not isinstance(entry, dict):
            raise BundleError(f"{where} is not described by a JSON object; {_REMEDY}")
        dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            raise BundleError(f"{where} has dtype {_shown(dtype)}, expected one of {', '.join(_DTYPES)}; {_REMEDY}")
        if not _is_sizes(shape) or len(shape) > _MAX_AXES:
            raise BundleError(f"{where} has shape {_shown(shape)}, expected at most {_MAX_AXES} sizes; {_REMEDY}")
        if not _is_sizes(offsets) or len(offsets) != 2:
            raise BundleError(
                f"{where} has data_offsets {_shown(offsets)}, expected two integers of at least 0; {_REMEDY}"
            )
        location = cls(_DTYPES[dtype], tuple(shape), offsets[0], offsets[1])
        if (size := math.prod(shape) * location.dtype.itemsize) != location.end - location.begin:
            raise BundleError(
                f"{where} spans bytes {_shown(offsets)}, expected {_shown(size)} bytes for its shape; {_REMEDY}"
            )
        return location

    def view(self, data: bytes, start: int) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = np.ndarray(self.shape, self.dtype, data, start + self.begin)
        # NumPy would copy an array that is not aligned in every operation; here it is copied once.
        aligned = np.require(array, requirements="A")
        aligned.flags.writeable = False
        return aligned


def _header(data: bytes, where: str) -> tuple[dict[str, Any], int]:
    """Return the header, and the offset of the tensors."""
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    start = _LENGTH_BYTES + length
    if start > len(data):
        raise BundleError(f"{where} has {len(data)} bytes, expected {start} for its header alone; {_REMEDY}")
    if length > _MAX_HEADER_BYTES:
        raise BundleError(f"{where} has a header of {length} bytes, expected at most {_MAX_HEADER_BYTES}; {_REMEDY}")
    try:
        header = json.loads(str(data[_LENGTH_BYTES:start], "utf-8"), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise BundleError(
            f"{where} is not a safetensors file: its header is not valid JSON ({error}); {_REMEDY}"
        ) from error
    if not isinstance(header, dict):
        raise BundleError(f"{where} is not a safetensors file: its header is not a JSON object; {_REMEDY}")
    return header, start


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise ValueError("a name appears twice")
    return unique


def _metadata(metadata: object, where: str) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise BundleError(f"{where}: {_METADATA} is {_shown(metadata)}, expected an object of strings; {_REMEDY}")
    return metadata


def _check_cover(entries: Iterable[_Entry], size: int, where: str) -> None:
    """Raise BundleError unless the tensors fill the rest of the file without gaps and overlaps."""
    end = 0
    for entry in sorted(entries, key=lambda entry: (entry.begin, entry.end)):
        if entry.begin != end:
            raise BundleError(f"{where}: a tensor begins at byte {entry.begin}, expected {end}; {_REMEDY}")
        # An empty array could claim any shape; none may be larger than the file.
        if math.prod(max(length, 1) for length in entry.shape) > max(size, 1):
            raise BundleError(f"{where}: a tensor has shape {_shown(entry.shape)}, too large for the file; {_REMEDY}")
        end = entry.end
    if end != size:
        raise BundleError(f"{where}: its tensors end at byte {end}, expected {size}; {_REMEDY}")


def _is_sizes(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < _TOO_LARGE for value in values)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
