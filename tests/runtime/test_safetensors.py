"""Safetensors files: round trips, and one-line errors for invalid files."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import BundleError, InputError
from edgeembed_runtime.cmow.safetensors import pack_tensors, unpack_tensors
from hypothesis import given, settings
from hypothesis import strategies as st

_TENSORS: dict[str, npt.NDArray[Any]] = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "codes": np.arange(-3, 4, dtype=np.int8),
    "bytes": np.arange(250, 256, dtype=np.uint8),
    "half": np.array([[0.5], [-2.0]], dtype=np.float16),
    "none": np.zeros((0, 3), dtype=np.float32),
    "one": np.array(7, dtype=np.float32),
}
_CONTENT = pack_tensors(_TENSORS, {"format": "x", "größe": "ü"})


def _entry(dtype: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def _file(header: object, body: bytes = bytes(8)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def _error_message(damaged: bytes) -> str:
    """Return the error message, or "" if the file can be read; then check that the arrays fit into the file."""
    try:
        file = unpack_tensors(damaged, "x")
    except BundleError as error:
        return str(error)
    assert sum(array.nbytes for array in file.tensors.values()) <= len(damaged)
    return ""


def _assert_equal(actual: dict[str, npt.NDArray[Any]], expected: dict[str, npt.NDArray[Any]]) -> None:
    assert set(actual) == set(expected)
    for name, array in expected.items():
        assert (actual[name].dtype, actual[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(actual[name], array)


def test_round_trip_keeps_tensors_and_metadata() -> None:
    file = unpack_tensors(_CONTENT, "x")
    _assert_equal(file.tensors, _TENSORS)
    assert file.metadata == {"format": "x", "größe": "ü"}


def test_files_are_compatible_with_the_safetensors_package() -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    read = unpack_tensors(safetensors.save(_TENSORS, {"format": "x"}), "x")
    _assert_equal(read.tensors, _TENSORS)
    assert read.metadata == {"format": "x"}
    _assert_equal(safetensors.load(_CONTENT), _TENSORS)


def test_arrays_are_read_only_views_of_the_bytes() -> None:
    whole = np.frombuffer(_CONTENT, dtype=np.uint8)
    for array in unpack_tensors(_CONTENT, "x").tensors.values():
        assert np.shares_memory(array, whole) or not array.size
        assert not array.flags.writeable
        assert array.flags.aligned


def test_unaligned_arrays_are_copied() -> None:
    header = {"a": _entry("I8", [1], [0, 1]), "b": _entry("F32", [2], [1, 9])}
    array = unpack_tensors(_file(header, b"\x01" + np.array([1.5, -2], np.float32).tobytes()), "x").tensors["b"]
    assert array.tolist() == [1.5, -2]
    assert array.flags.aligned
    assert not array.flags.writeable


def test_array_that_is_not_contiguous_is_packed_in_row_order() -> None:
    transposed = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert np.array_equal(unpack_tensors(pack_tensors({"a": transposed}, {}), "x").tensors["a"], transposed)


def test_packing_another_dtype_raises() -> None:
    with pytest.raises(InputError, match="'a' is float64, expected float32, float16, int8 or uint8"):
        pack_tensors({"a": np.zeros(2)}, {})


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"", "has 0 bytes, expected 8"),
        (b"\x01\0", "has 2 bytes, expected 9"),
        (b"\xff" * 8, "has 8 bytes, expected 18446744073709551623"),
        ((2**20 + 1).to_bytes(8, "little") + bytes(2**20 + 1), "a header of 1048577 bytes"),
        (_file(b"{"), "is not valid JSON"),
        (_file(b"\xff\xfe"), "is not valid JSON"),
        (_file(b"[" * 100_000), "is not valid JSON"),
        (_file(b"1" * 10_000), "is not valid JSON"),
        (_file([]), "is not a JSON object"),
        (_file(b'{"a": 1, "a": 2}'), "a name appears twice"),
        (_file({"__metadata__": 3}), "__metadata__ is 3, expected an object of strings"),
        (_file({"__metadata__": {"a": 1}}), "__metadata__"),
        (_file({"a": 3}), "tensor 'a' is not described by a JSON object"),
        (_file({"a": {}}), "dtype None"),
        (_file({"a": _entry("BF16")}), "tensor 'a' has dtype 'BF16', expected one of F32, F16, I8"),
        (_file({"a": _entry(["F32"])}), "dtype"),
        (_file({"a": _entry(shape=2)}), "shape 2"),
        (_file({"a": _entry(shape=[-2])}), "shape"),
        (_file({"a": _entry(shape=[2.0])}), "shape"),
        (_file({"a": _entry(shape=[True, 2])}), "shape"),
        (_file({"a": _entry(shape=[1] * 9)}), "shape"),
        (_file({"a": _entry(shape=[10**400])}), "shape"),
        (_file({"a": _entry(shape=[2**52] * 8)}), "expected .* bytes for its shape"),
        (_file({"a": _entry(shape=[0, 2**40], offsets=[0, 0])}, b""), "too large for the file"),
        (_file({"a": _entry(shape=[3])}), "expected 12 bytes for its shape"),
        (_file({"a": _entry(offsets=[0])}), "data_offsets"),
        (_file({"a": _entry(offsets=[0, 8.0])}), "data_offsets"),
        (_file({"a": _entry(offsets=[8, 0])}), "spans bytes"),
        (_file({"a": _entry(offsets=[8, 16])}), "begins at byte 8, expected 0"),
        (_file({"a": _entry(), "b": _entry()}), "begins at byte 0, expected 8"),
        (_file({"a": _entry(), "b": _entry(offsets=[10, 18])}, bytes(18)), "begins at byte 10, expected 8"),
        (_file({"a": _entry()}, bytes(7)), "end at byte 8, expected 7"),
        (_file({"a": _entry()}, bytes(9)), "end at byte 8, expected 9"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_file_raises_in_one_line(damaged: bytes, message: str) -> None:
    with pytest.raises(BundleError, match=message) as caught:
        unpack_tensors(damaged, "model")
    assert str(caught.value).startswith("model")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_mutated_bytes_are_read_or_raise(data: st.DataObject) -> None:
    damaged = bytearray(_CONTENT)
    for position, byte in data.draw(st.lists(st.tuples(st.integers(0, len(damaged) - 1), st.integers(0, 255)))):
        damaged[position] = byte
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(damaged))] * 2)))
    if data.draw(st.booleans()):
        damaged[start:end] = data.draw(st.binary(max_size=20))
    assert "\n" not in _error_message(bytes(damaged))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
_SIZES = st.lists(st.integers(0, 9) | st.sampled_from([2**31, 2**53, 2**64, -1]), max_size=3)


@settings(max_examples=200, deadline=None)
@given(
    header=st.dictionaries(
        st.sampled_from(["a", "b", "__metadata__"]),
        _JSON
        | st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(["F32", "F16", "I8", "U8", "F64"]) | _JSON,
                "shape": _SIZES | _JSON,
                "data_offsets": _SIZES | _JSON,
            }
        ),
    ),
    body=st.binary(max_size=12),
)
def test_any_header_is_read_or_raises(header: dict[str, object], body: bytes) -> None:
    assert "\n" not in _error_message(_file(header, body))
