"""Named arrays in the bytes of a safetensors file: read without trust and without copying, and written."""

import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import BundleError, InputError

_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "I8": np.dtype("i1")}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_METADATA = "__metadata__"
_LENGTH_BYTES = 8
# A header of this size names thousands of tensors; a larger one costs more memory, once parsed, than it could be worth.
_LONGEST_HEADER = 2**20
_MOST_AXES = 8
_TOO_LARGE = 2**53
_AGAIN = "export the bundle again"


@dataclass(frozen=True)
class TensorFile:
    """What a safetensors file holds.

    Attributes:
        tensors: Each array by its name: read-only views of the file's bytes (copies where those are not aligned).
        metadata: Texts by name.
    """

    tensors: dict[str, npt.NDArray[Any]]
    metadata: dict[str, str]


def unpack_tensors(data: bytes, where: str) -> TensorFile:
    """Give what the bytes of a safetensors file hold.

    Args:
        data: The whole file: the header's length as eight bytes, little end first, the header as JSON, the tensors.
        where: What to call the file in messages.

    Raises:
        BundleError: If these are no such bytes, if the tensors do not fill them without holes and overlaps, or if one
            is of another type than float32, float16 or int8.
    """
    header, start = _header(data, where)
    metadata = _metadata(header.pop(_METADATA, {}), where)
    entries = {name: _Entry.parse(entry, f"{where}: tensor {name[:80]!r}") for name, entry in header.items()}
    _check_cover(entries.values(), len(data) - start, where)
    return TensorFile({name: entry.view(data, start) for name, entry in entries.items()}, metadata)


def pack_tensors(tensors: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """Give the bytes of a safetensors file.

    Args:
        tensors: Arrays of float32, float16 or int8 by name.
        metadata: Texts by name.

    Raises:
        InputError: If an array is of another type.
    """
    for name, array in tensors.items():
        if array.dtype not in _NAMES:
            raise InputError(f"tensor {name!r} is {array.dtype}, expected float32, float16 or int8; convert it")
    # The widest numbers first, so that each array begins at a multiple of its numbers' size.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
    ends = list(itertools.accumulate((array.nbytes for _, array in ordered), initial=0))
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    for (name, array), begin, end in zip(ordered, ends, ends[1:], strict=False):
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)
    return b"".join([len(text).to_bytes(_LENGTH_BYTES, "little"), text, *(array.tobytes() for _, array in ordered)])


@dataclass(frozen=True)
class _Entry:
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int

    @classmethod
    def parse(cls, entry: object, where: str) -> "_Entry":
        if not isinstance(entry, dict):
            raise BundleError(f"{where} is described by no JSON object; {_AGAIN}")
        dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            raise BundleError(f"{where} has the dtype {_shown(dtype)}, expected {', '.join(_DTYPES)}; {_AGAIN}")
        if not _is_sizes(shape) or len(shape) > _MOST_AXES:
            raise BundleError(f"{where} has the shape {_shown(shape)}, expected at most {_MOST_AXES} sizes; {_AGAIN}")
        if not _is_sizes(offsets) or len(offsets) != 2:
            raise BundleError(f"{where} has the data_offsets {_shown(offsets)}, expected two whole numbers; {_AGAIN}")
        found = cls(_DTYPES[dtype], tuple(shape), offsets[0], offsets[1])
        if (size := math.prod(shape) * found.dtype.itemsize) != found.end - found.begin:
            raise BundleError(
                f"{where} spans bytes {_shown(offsets)}, expected {_shown(size)} bytes for its shape; {_AGAIN}"
            )
        return found

    def view(self, data: bytes, start: int) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = np.ndarray(self.shape, self.dtype, data, start + self.begin)
        # NumPy copies an array that is not aligned at every use of it; better once.
        aligned = np.require(array, requirements="A")
        aligned.flags.writeable = False
        return aligned


def _header(data: bytes, where: str) -> tuple[dict[str, Any], int]:
    """Give the header, and where the tensors begin."""
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    start = _LENGTH_BYTES + length
    if start > len(data):
        raise BundleError(f"{where} has {len(data)} bytes, expected {start} for its header alone; {_AGAIN}")
    if length > _LONGEST_HEADER:
        raise BundleError(f"{where} has a header of {length} bytes, expected at most {_LONGEST_HEADER}; {_AGAIN}")
    try:
        header = json.loads(str(data[_LENGTH_BYTES:start], "utf-8"), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{where} is no safetensors file: its header is no JSON ({error}); {_AGAIN}") from error
    if not isinstance(header, dict):
        raise BundleError(f"{where} is no safetensors file: its header is no JSON object; {_AGAIN}")
    return header, start


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name appears twice")
    return found


def _metadata(metadata: object, where: str) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise BundleError(f"{where}: {_METADATA} is {_shown(metadata)}, expected texts by name; {_AGAIN}")
    return metadata


def _check_cover(entries: Iterable[_Entry], size: int, where: str) -> None:
    """Check that the tensors, one after another, are all that follows the header."""
    end = 0
    for entry in sorted(entries, key=lambda entry: (entry.begin, entry.end)):
        if entry.begin != end:
            raise BundleError(f"{where}: a tensor begins at byte {entry.begin}, expected {end}; {_AGAIN}")
        # An array without numbers may claim any shape; none may be larger than the file could hold.
        if math.prod(max(length, 1) for length in entry.shape) > max(size, 1):
            raise BundleError(f"{where}: a tensor has the shape {_shown(entry.shape)}, too large for it; {_AGAIN}")
        end = entry.end
    if end != size:
        raise BundleError(f"{where}: its tensors end at byte {end}, expected {size}; {_AGAIN}")


def _is_sizes(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < _TOO_LARGE for value in values)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
