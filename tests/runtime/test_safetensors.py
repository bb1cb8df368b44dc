"""Tensor files: what is read back, and what is refused."""

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
    "half": np.array([[0.5], [-2.0]], dtype=np.float16),
    "none": np.zeros((0, 3), dtype=np.float32),
    "one": np.array(7, dtype=np.float32),
}
_CONTENT = pack_tensors(_TENSORS, {"format": "x", "größe": "ü"})


def entry(dtype: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def content(header: object, body: bytes = bytes(8)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def refusal(damaged: bytes) -> str:
    """Give the message, or nothing where the bytes can be read; then no array is larger than they are."""
    try:
        file = unpack_tensors(damaged, "x")
    except BundleError as error:
        return str(error)
    assert sum(array.nbytes for array in file.tensors.values()) <= len(damaged)
    return ""


def assert_same(found: dict[str, npt.NDArray[Any]], expected: dict[str, npt.NDArray[Any]]) -> None:
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found[name], array)


def test_what_was_packed_is_unpacked() -> None:
    file = unpack_tensors(_CONTENT, "x")
    assert_same(file.tensors, _TENSORS)
    assert file.metadata == {"format": "x", "größe": "ü"}


def test_a_file_of_the_safetensors_package_is_read_and_ours_is_read_by_it() -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    theirs = unpack_tensors(safetensors.save(_TENSORS, {"format": "x"}), "x")
    assert_same(theirs.tensors, _TENSORS)
    assert theirs.metadata == {"format": "x"}
    assert_same(safetensors.load(_CONTENT), _TENSORS)


def test_arrays_are_read_only_views_of_the_bytes() -> None:
    whole = np.frombuffer(_CONTENT, dtype=np.uint8)
    for array in unpack_tensors(_CONTENT, "x").tensors.values():
        assert np.shares_memory(array, whole) or not array.size
        assert not array.flags.writeable
        assert array.flags.aligned


def test_arrays_that_are_not_aligned_are_copied() -> None:
    header = {"a": entry("I8", [1], [0, 1]), "b": entry("F32", [2], [1, 9])}
    array = unpack_tensors(content(header, b"\x01" + np.array([1.5, -2], np.float32).tobytes()), "x").tensors["b"]
    assert array.tolist() == [1.5, -2]
    assert array.flags.aligned
    assert not array.flags.writeable


def test_an_array_that_is_not_contiguous_is_packed_as_it_reads() -> None:
    turned = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert np.array_equal(unpack_tensors(pack_tensors({"a": turned}, {}), "x").tensors["a"], turned)


def test_other_types_are_not_packed() -> None:
    with pytest.raises(InputError, match="'a' is float64, expected float32, float16 or int8"):
        pack_tensors({"a": np.zeros(2)}, {})


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"", "has 0 bytes, expected 8"),
        (b"\x01\0", "has 2 bytes, expected 9"),
        (b"\xff" * 8, "has 8 bytes, expected 18446744073709551623"),
        ((2**20 + 1).to_bytes(8, "little") + bytes(2**20 + 1), "a header of 1048577 bytes"),
        (content(b"{"), "is not valid JSON"),
        (content(b"\xff\xfe"), "is not valid JSON"),
        (content(b"[" * 100_000), "is not valid JSON"),
        (content(b"1" * 10_000), "is not valid JSON"),
        (content([]), "is not a JSON object"),
        (content(b'{"a": 1, "a": 2}'), "a name appears twice"),
        (content({"__metadata__": 3}), "__metadata__ is 3, expected an object of strings"),
        (content({"__metadata__": {"a": 1}}), "__metadata__"),
        (content({"a": 3}), "tensor 'a' is not described by a JSON object"),
        (content({"a": {}}), "dtype None"),
        (content({"a": entry("BF16")}), "tensor 'a' has dtype 'BF16', expected one of F32, F16, I8"),
        (content({"a": entry(["F32"])}), "dtype"),
        (content({"a": entry(shape=2)}), "shape 2"),
        (content({"a": entry(shape=[-2])}), "shape"),
        (content({"a": entry(shape=[2.0])}), "shape"),
        (content({"a": entry(shape=[True, 2])}), "shape"),
        (content({"a": entry(shape=[1] * 9)}), "shape"),
        (content({"a": entry(shape=[10**400])}), "shape"),
        (content({"a": entry(shape=[2**52] * 8)}), "expected .* bytes for its shape"),
        (content({"a": entry(shape=[0, 2**40], offsets=[0, 0])}, b""), "too large for the file"),
        (content({"a": entry(shape=[3])}), "expected 12 bytes for its shape"),
        (content({"a": entry(offsets=[0])}), "data_offsets"),
        (content({"a": entry(offsets=[0, 8.0])}), "data_offsets"),
        (content({"a": entry(offsets=[8, 0])}), "spans bytes"),
        (content({"a": entry(offsets=[8, 16])}), "begins at byte 8, expected 0"),
        (content({"a": entry(), "b": entry()}), "begins at byte 0, expected 8"),
        (content({"a": entry(), "b": entry(offsets=[10, 18])}, bytes(18)), "begins at byte 10, expected 8"),
        (content({"a": entry()}, bytes(7)), "end at byte 8, expected 7"),
        (content({"a": entry()}, bytes(9)), "end at byte 8, expected 9"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_such_file_is_refused_in_one_line(damaged: bytes, message: str) -> None:
    with pytest.raises(BundleError, match=message) as caught:
        unpack_tensors(damaged, "model")
    assert str(caught.value).startswith("model")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_mutated_bytes_are_read_or_refused(data: st.DataObject) -> None:
    damaged = bytearray(_CONTENT)
    for position, byte in data.draw(st.lists(st.tuples(st.integers(0, len(damaged) - 1), st.integers(0, 255)))):
        damaged[position] = byte
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(damaged))] * 2)))
    if data.draw(st.booleans()):
        damaged[start:end] = data.draw(st.binary(max_size=20))
    assert "\n" not in refusal(bytes(damaged))


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
                "dtype": st.sampled_from(["F32", "F16", "I8", "F64"]) | _JSON,
                "shape": _SIZES | _JSON,
                "data_offsets": _SIZES | _JSON,
            }
        ),
    ),
    body=st.binary(max_size=12),
)
def test_any_header_is_read_or_refused(header: dict[str, object], body: bytes) -> None:
    assert "\n" not in refusal(content(header, body))
