"""Arrays in .npy files: round trips, and one-line errors for every other file."""

import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import InputError
from edgeembed_runtime.index.npy import MappedArrays, write_array
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize("stored_type", ["<f4", "<f2", "|i1", "<u8", "<i8", "<i4"])
@pytest.mark.parametrize("shape", [(0,), (5,), (0, 3), (5, 3)])
def test_array_round_trip_and_numpy_reads_the_file(tmp_path: Path, stored_type: str, shape: tuple[int, ...]) -> None:
    rows: npt.NDArray[Any] = np.arange(np.prod(shape)).reshape(shape).astype(stored_type)
    write_array(tmp_path / "a.npy", rows)
    mapped = MappedArrays().map(tmp_path / "a.npy", stored_type, shape)
    assert np.array_equal(mapped, rows)
    assert mapped.dtype == rows.dtype
    assert not mapped.size or not mapped.flags.writeable
    assert np.array_equal(np.load(tmp_path / "a.npy", allow_pickle=False), rows)


def test_files_of_numpy_save_can_be_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((4, 2), dtype=np.float32))
    assert MappedArrays().map(tmp_path / "a.npy", "<f4", (4, None)).shape == (4, 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((4, 3), dtype=np.float32), r"is float32 \(4, 3\), expected float32 \(4, 2\)"),
        (np.ones((4, 2)), r"is float64 \(4, 2\), expected float32 \(4, 2\)"),
        (np.ones(4, dtype=np.float32), r"is float32 \(4\), expected"),
        (np.asfortranarray(np.ones((4, 2), dtype=np.float32)), r"is float32 \(4, 2\) in Fortran order, expected"),
        (np.array([[None] * 2] * 4), "is not a valid .npy file .*Python objects"),
        (np.ones((1, 4, 2), dtype=np.float32), r"is float32 \(1, 4, 2\), expected"),
        (np.zeros((4, 2), dtype=[("a", "f4")]), r"is \[\('a', '<f4'\)\] \(4, 2\), expected"),
        (np.zeros((4, 2), dtype="<U1"), r"is <U1 \(4, 2\), expected"),
    ],
)
def test_other_dtypes_and_shapes_raise(tmp_path: Path, rows: npt.NDArray[Any], message: str) -> None:
    np.save(tmp_path / "a.npy", rows)
    with pytest.raises(InputError, match=message):
        MappedArrays().map(tmp_path / "a.npy", "<f4", (4, 2))


def test_header_larger_than_the_file_raises(tmp_path: Path) -> None:
    write_array(tmp_path / "a.npy", np.ones((4, 2), dtype=np.float32))
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content.replace(b"(4, 2), ", b"(999999999999999, 999999999999999), "))
    with pytest.raises(InputError, match=r"is not a valid \.npy file|bytes, expected"):
        MappedArrays().map(tmp_path / "a.npy", "<f4", (None, None))
    with pytest.raises(InputError, match=r"cannot read .*: No such file"):
        MappedArrays().map(tmp_path / "b.npy", "<f4", (None,))


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=20), place=st.integers(0, 140), cut=st.integers(0, 170))
def test_mutated_files_are_the_array_or_raise_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, place: int, cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.npy"
    write_array(path, np.ones((4, 2), dtype=np.float32))
    whole = path.read_bytes()
    path.write_bytes((whole[:place] + content + whole[place + len(content) :])[:cut])
    try:
        assert MappedArrays().map(path, "<f4", (4, 2)).shape == (4, 2)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either is right


def test_full_disk_raises_with_its_reason() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_array(full, np.ones((400_000, 2), dtype=np.float32))
    assert caught.value.strerror == os.strerror(28)


def test_mapping_does_not_read_the_data(tmp_path: Path) -> None:
    write_array(tmp_path / "a.npy", np.ones((1 << 20, 8), dtype=np.float32))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    MappedArrays().map(tmp_path / "a.npy", "<f4", (1 << 20, 8))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 1000  # of 8,192 pages
