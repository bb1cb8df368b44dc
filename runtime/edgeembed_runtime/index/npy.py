"""Write arrays to .npy files, and map them into memory after checking their dtype, shape and size."""

import contextlib
import mmap
import sys
import weakref
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError

_MAX_REASON_CHARACTERS = 200
# Windows replaces no folder of which a file is mapped, whichever process mapped it.
_MAPS_FILES = sys.platform != "win32"


class ArrayWriter(contextlib.AbstractContextManager["ArrayWriter"]):
    """Writes an array to a .npy file block by block.

    Unlike `numpy.save`, it states the reason if writing fails.

    Args:
        path: The file.
        dtype: The dtype: "<f4", for example.
        shape: The shape of all blocks together.

    Raises:
        OSError: Here or in `append`, if the file cannot be written, for example because the disk is full.
    """

    def __init__(self, path: Path, dtype: str, shape: tuple[int, ...]) -> None:
        self._dtype = dtype
        self._file = path.open("wb")
        header = {"descr": dtype, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)

    def append(self, block: npt.NDArray[Any]) -> None:
        """Write the next rows."""
        self._file.write(np.ascontiguousarray(block, dtype=self._dtype).data)

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an array of one or two axes to a .npy file; see `ArrayWriter`."""
    with ArrayWriter(path, array.dtype.newbyteorder("<").str, array.shape) as writer:
        writer.append(array)


class MappedArrays:
    """Arrays mapped from files into memory, and a check that those files are still complete.

    On Windows the arrays are read into memory instead, so that a saved index can be replaced while it is open.

    If a mapped file is truncated, the system ends a process that reads the missing part (SIGBUS). `check` detects that
    in time, unless the file is truncated between the check and the read.
    """

    def __init__(self) -> None:
        # Weak references: an array that was copied and is no longer used needs no check.
        self._maps: list[tuple[Path, weakref.ref[mmap.mmap], int]] = []

    def map(self, path: Path, dtype: str, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
        """Map the array in a .npy file into memory.

        Args:
            path: The file.
            dtype: The expected dtype: "<f4", for example.
            shape: The expected shape; None stands for any length.

        Returns:
            The array, read-only, of that dtype and shape.

        Raises:
            InputError: If the file is not such an array, or cannot be read.
        """
        try:
            # np.load(mmap_mode="r") without its fallbacks to .npz and pickle files.
            array: np.memmap[Any, Any] = np.lib.format.open_memmap(path, mode="r")
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}; expected a readable file") from error
        except Exception as error:  # NumPy raises many kinds of exception for an invalid header
            reason = " ".join(str(error).split())[:_MAX_REASON_CHARACTERS]
            raise InputError(f"{path} is not a valid .npy file ({reason}); build the index again") from error
        if array.dtype != np.dtype(dtype) or not _matches(array.shape, shape) or not array.flags.c_contiguous:
            order = "" if array.flags.c_contiguous else " in Fortran order"
            actual = f"{str(array.dtype)[:_MAX_REASON_CHARACTERS]} {_format_shape(array.shape)}{order}"
            expected = f"{np.dtype(dtype)} {_format_shape(shape)}"
            raise InputError(f"{path} is {actual}, expected {expected}; build the index again")
        buffer = cast("mmap.mmap", array.base)
        size, expected_size = buffer.size(), array.offset + array.nbytes
        if size != expected_size:
            raise InputError(f"{path} has {size} bytes, expected {expected_size}; build the index again")
        if not _MAPS_FILES:
            return _read_only(np.array(array))
        self._maps.append((path, weakref.ref(buffer), size))
        return np.asarray(array)

    def check(self) -> None:
        """Check that no mapped file that is still in use was truncated.

        Raises:
            InputError: If a file was truncated; reading it would end the process.
        """
        for path, reference, expected_size in self._maps:
            buffer = reference()
            if buffer is not None and (size := buffer.size()) < expected_size:
                raise InputError(
                    f"{path} was truncated to {size} bytes while it was open, expected {expected_size}; "
                    "build the index again"
                )


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


def _matches(actual: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(actual) == len(expected) and all(e in (None, f) for f, e in zip(actual, expected, strict=True))


def _format_shape(shape: tuple[int | None, ...]) -> str:
    return f"({', '.join('any' if length is None else str(length) for length in shape)})"
