"""Arrays in files of NumPy's format, of which no more is believed than what was expected.

`numpy.load` would evaluate the header as a Python expression, and `numpy.save` does not say that a disk is full.
"""

import math
import mmap
import os
import re
import weakref
from pathlib import Path
from typing import Any, BinaryIO

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


class MappedArrays:
    """Arrays mapped into memory from files, and whether those files are still whole.

    Whoever cuts a mapped file short makes the system end every process that then reads what was cut off (SIGBUS).
    `check` notices that in time, unless the file is cut in the very moment between the check and the reading.
    """

    def __init__(self) -> None:
        # Weak, so that an array that is no longer used, having been copied, is no longer checked.
        self._maps: list[tuple[Path, weakref.ref[mmap.mmap]]] = []

    def map(self, path: Path, stored_type: str, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
        """Map the array in a file into memory.

        Args:
            path: The file.
            stored_type: The type of its numbers: "<f4", for example.
            shape: Its shape; None stands for any length.

        Returns:
            The array, read-only and of that type and shape.

        Raises:
            InputError: If the file is no such array.
        """
        try:
            with path.open("rb") as file:
                begin, found_shape = _read_header(file, path, stored_type, shape)
                if math.prod(found_shape) == 0:  # no rows cannot be mapped
                    return np.empty(found_shape, dtype=stored_type)
                mapped = _map(file, begin + math.prod(found_shape) * np.dtype(stored_type).itemsize)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}; expected a readable file") from error
        if mapped is None:
            raise InputError(f"{path} was cut short while it was opened; build the index again")
        self._maps.append((path, weakref.ref(mapped)))
        return np.frombuffer(mapped, dtype=stored_type, count=math.prod(found_shape), offset=begin).reshape(found_shape)

    def check(self) -> None:
        """Check that every mapped file that is still used has the size that it had.

        Raises:
            InputError: If one was cut short; reading it would end the process.
        """
        for path, reference in self._maps:
            mapped = reference()
            if mapped is not None and mapped.size() < len(mapped):
                raise InputError(
                    f"{path} was cut to {mapped.size()} bytes while it was open, expected {len(mapped)}; "
                    "build the index again"
                )


def _map(file: BinaryIO, size: int) -> mmap.mmap | None:
    """Map the first `size` bytes of a file; return None if it has fewer by now."""
    try:
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    except ValueError:
        return None


def _read_header(
    file: BinaryIO, path: Path, stored_type: str, shape: tuple[int | None, ...]
) -> tuple[int, tuple[int, ...]]:
    """Return where the numbers begin, in bytes, and the array's shape."""
    start = file.read(len(_START) + 2)
    header = file.read(int.from_bytes(start[len(_START) :], "little")).decode("latin-1")
    begin, size = file.tell(), os.fstat(file.fileno()).st_size
    match = _HEADER.fullmatch(header)
    if not start.startswith(_START) or match is None:
        raise InputError(f"{path} is no array of a kind that an index holds; build the index again")
    found_type, found_shape = match[1], tuple(int(length) for length in match.groups()[1:] if length is not None)
    if found_type != stored_type or not _agree(found_shape, shape):
        found, expected = _named(found_type, found_shape), _named(stored_type, shape)
        raise InputError(f"{path} is {found}, expected {expected}; build the index again")
    if size != (expected_size := begin + math.prod(found_shape) * np.dtype(stored_type).itemsize):
        raise InputError(f"{path} has {size} bytes, expected {expected_size}; build the index again")
    return begin, found_shape


def _agree(found: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(found) == len(expected) and all(e in (None, f) for f, e in zip(found, expected, strict=True))


def _named(stored_type: str, shape: tuple[int | None, ...]) -> str:
    lengths = ", ".join("any" if length is None else str(length) for length in shape)
    return f"{np.dtype(stored_type)} ({lengths})"
