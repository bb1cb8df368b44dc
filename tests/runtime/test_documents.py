"""Documents and hits, and the validation of ids and metadata."""

from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Document, Hit, InputError, Passage
from edgeembed_runtime.documents import copy_metadata, validate_ids, validate_metadata


class _Color(IntEnum):
    RED = 1


def test_documents_and_hits_are_immutable_and_hashable() -> None:
    document, hit = Document("a", "text", {"tags": ["x"]}), Hit("a", 0.5, "text", {}, Passage(0, 2, "te"))
    assert len({document, Document("a", "text", {"tags": ["x"]}), hit}) == 2
    with pytest.raises(AttributeError):
        document.text = "other"  # type: ignore[misc]
    assert (Hit(0, 1.0, "text").metadata, Hit(0, 1.0, "text").passage) == ({}, None)


def test_ids_of_other_types_become_int_and_str() -> None:
    given: list[Any] = [np.int32(3), np.str_("a"), _Color.RED, -5, ""]
    ids = validate_ids(given)
    assert ids == [3, "a", 1, -5, ""]
    assert [type(each) for each in ids] == [int, str, int, int, str]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("ab", "the ids are str, expected a list of document ids"),
        (3, "the ids are int, expected a list of document ids"),
        ([0, True], "True is not a document id, expected an integer of at most 64 bits, or a str"),
        ([0, 1.0], r"1\.0 is not a document id"),
        ([0, None], "None is not a document id"),
        ([0, "\ud800"], "is not a document id"),
        ([0, 1 << 63], "9223372036854775808 is not a document id"),
        ([0], "there are 1 ids for 2 documents, expected one for each document"),
        ([0, 1, 2], "there are 3 ids for 2 documents"),
        (["a", "a"], "the id 'a' is there twice, expected a different id for each document"),
        ([7, np.int64(7)], "the id 7 is there twice"),
    ],
)
def test_invalid_ids_raise(ids: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        validate_ids(ids, 2)
    assert "\n" not in str(caught.value)


def test_metadata_is_copied() -> None:
    given: list[dict[str, Any]] = [{"tags": ["a"], "year": 2020}]
    (valid,) = validate_metadata(given, 1)
    copied = copy_metadata(valid)
    given[0]["tags"].append("b")
    given[0]["year"] = 1
    valid["tags"].append("c")
    assert copied == {"tags": ["a"], "year": 2020}


def test_metadata_values_become_plain_python_values() -> None:
    values = {"a": np.float32(0.5), "b": np.int8(3), "c": np.bool_(True), "d": np.str_("x"), "e": [np.int64(1), None]}
    (valid,) = validate_metadata([values], 1)
    assert valid == {"a": 0.5, "b": 3, "c": True, "d": "x", "e": [1, None]}
    assert [type(value) for value in valid.values()] == [float, int, bool, str, list]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"a": 1}, "the metadata is dict, expected a list with one dict per document"),
        ("a", "the metadata is str, expected a list"),
        (None, "the metadata is NoneType, expected a list"),
        ([{}, {}], "there are 2 metadata for 1 documents, expected one for each document"),
        ([None], "the metadata of document 0 is None, expected a dict; pass an empty one"),
        ([{1: "a"}], "the metadata of document 0 has the key 1, expected a str"),
        ([{"\ud800": "a"}], "the metadata of document 0 has the key"),
        ([{"a": {"b": 1}}], "the metadata of document 0: 'a' is {'b': 1}, expected a str, bool, finite float, integer"),
        ([{"a": float("nan")}], "'a' is nan, expected"),
        ([{"a": [[]]}], r"'a' is \[\[\]\], expected"),
        ([{"a": (1, 2)}], r"'a' is \(1, 2\), expected"),
        ([{"a": 10**30}], "'a' is 1000000000000000000000000000000, expected"),
        ([{"a": "\ud800"}], "'a' is '.*', expected"),
        ([{"a": b"bytes"}], "'a' is b'bytes', expected"),
    ],
)
def test_invalid_metadata_raises(metadata: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        validate_metadata(metadata, 1)
    assert "\n" not in str(caught.value)
