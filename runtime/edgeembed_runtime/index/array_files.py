"""Arrays in files of NumPy's format, of which no more is believed than what was expected.

`numpy.load` would evaluate the header as a Python expression, and `numpy.save` does not say that a disk is full.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError

_START = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    r"\{'descr': '(<f[248]|<i[48]|<u8|\|i1)', 'fortran_order': False, 'shape': \((\d{1,15}),(?: (\d{1,15}))?\), \} *\n"
)


def write_array(path: Path, rows: npt.NDArray[Any]) -> None:
    """Write an array of one or two axes to a file.

    Raises:
        OSError: If there is no room for it, for example.
    """
    little_endian = np.ascontiguousarray(rows, dtype=rows.dtype.newbyteorder("<"))
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(little_endian))
        file.write(little_endian.data)


def map_array(path: Path, stored_type: str, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
    """Give the array in a file, mapped into memory rather than read.

    Args:
        path: The file.
        stored_type: The type of its numbers: "<f4", for example.
        shape: Its shape; None takes any length.

    Raises:
        InputError: If the file is no such array.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(_START) + 2)
            header = file.read(int.from_bytes(start[len(_START) :], "little")).decode("latin-1")
            begin, size = file.tell(), path.stat().st_size
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; expected a readable file") from error
    match = _HEADER.fullmatch(header)
    if not start.startswith(_START) or match is None:
        raise InputError(f"{path} is no array of a kind that an index holds; build the index again")
    found_type, found_shape = match[1], tuple(int(length) for length in match.groups()[1:] if length is not None)
    if found_type != stored_type or not _agree(found_shape, shape):
        found, expected = _named(found_type, found_shape), _named(stored_type, shape)
        raise InputError(f"{path} is {found}, expected {expected}; build the index again")
    if size != (expected_size := begin + int(np.prod(found_shape, dtype=object)) * np.dtype(stored_type).itemsize):
        raise InputError(f"{path} has {size} bytes, expected {expected_size}; build the index again")
    if size == begin:  # no rows cannot be mapped
        return np.empty(found_shape, dtype=stored_type)
    return np.asarray(np.memmap(path, dtype=stored_type, mode="r", offset=begin, shape=found_shape))


def _agree(found: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(found) == len(expected) and all(e in (None, f) for f, e in zip(found, expected, strict=True))


def _named(stored_type: str, shape: tuple[int | None, ...]) -> str:
    lengths = ", ".join("any" if length is None else str(length) for length in shape)
    return f"{np.dtype(stored_type)} ({lengths})"
