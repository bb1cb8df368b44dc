"""Filters over metadata: operators, kinds of values, and invalid filters."""

from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import InputError
from edgeembed_runtime.index.filters import matching_documents, parse_filter

_METADATA: list[dict[str, Any]] = [
    {"lang": "en", "year": 2020, "tags": ["news", "sport"], "draft": False},
    {"lang": "de", "year": 2019.5, "tags": [], "draft": True},
    {"lang": None, "year": "2020", "tags": ["news", 1]},
    {},
    {"year": 1, "draft": 1, "name": "the long report"},
]


def _matches(condition: Any) -> list[int]:
    matches = matching_documents(parse_filter(condition), _METADATA, len(_METADATA))
    return np.flatnonzero(matches).tolist()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"lang": "en"}, [0]),
        ({"lang": None}, [2]),
        ({"lang": "en", "year": 2020}, [0]),
        ({"lang": "en", "year": 2019}, []),
        ({"year": {"$eq": 2020.0}}, [0]),
        ({"year": {"$ne": 2020}}, [1, 2, 3, 4]),
        ({"year": {"$gt": 2019.5}}, [0]),
        ({"year": {"$gte": 2019.5}}, [0, 1]),
        ({"year": {"$lt": 2019.5}}, [4]),
        ({"year": {"$lte": np.float64(2019.5)}}, [1, 4]),
        ({"year": {"$gte": 2019, "$lt": 2020}}, [1]),
        ({"year": {"$gt": "2"}}, [2]),
        ({"lang": {"$lt": "e"}}, [1]),
        ({"draft": True}, [1]),
        ({"draft": 1}, [4]),
        ({"draft": {"$gt": 0}}, [4]),
        ({"draft": {"$in": [False, 1.0]}}, [0, 4]),
        ({"lang": {"$in": ["en", None]}}, [0, 2]),
        ({"lang": {"$in": []}}, []),
        ({"lang": {"$nin": {"en", "de"}}}, [2, 3, 4]),
        ({"lang": {"$exists": True}}, [0, 1, 2]),
        ({"lang": {"$exists": False}}, [3, 4]),
        ({"tags": {"$contains": "news"}}, [0, 2]),
        ({"tags": {"$contains": 1}}, [2]),
        ({"tags": {"$contains": True}}, []),
        ({"name": {"$contains": "long"}}, [4]),
        ({"year": {"$contains": 2020}}, []),
        ({"tags": []}, [1]),
        ({"tags": ["news", 1]}, [2]),
        ({"tags": {"$in": [["news", "sport"], "news"]}}, [0, 2]),
        ({"tags": "news"}, [0, 2]),
        ({"tags": {"$in": ["weather", 1]}}, [2]),
        ({"tags": {"$nin": ["news"]}}, [1, 3, 4]),
        ({"tags": {"$ne": "sport"}}, [1, 2, 3, 4]),
        ({"tags": {"$gte": 1}}, [2]),
        ({"$and": [{"lang": "en"}, {"year": 2020}]}, [0]),
        ({"$or": [{"lang": "de"}, {"year": 1}]}, [1, 4]),
        ({"$not": {"lang": "de"}}, [0, 2, 3, 4]),
        ({"lang": {"$not": {"$in": ["de", "en"]}}}, [2, 3, 4]),
        ({"lang": {"$not": "de"}}, [0, 2, 3, 4]),
        (
            {"$or": [{"lang": "en"}, {"$and": [{"draft": True}, {"year": {"$lt": 2020}}]}], "year": {"$gt": 2019}},
            [0, 1],
        ),
        (lambda metadata: metadata.get("year") == 2020, [0]),
        (lambda metadata: metadata.get("tags"), [0, 2]),
    ],
)
def test_filter_matches_exactly_these_documents(condition: Any, expected: list[int]) -> None:
    assert _matches(condition) == expected


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("en", "the filter is 'en', expected a dict such as .*, or a function of the metadata"),
        ([{"a": 1}], "the filter is .*, expected a dict such as"),
        ({1: 2}, "the filter has the key 1, expected the name of a field as a str"),
        ({"$nor": []}, r"the filter has the operator '\$nor', expected the name of a field, or \$and, \$or, \$not"),
        ({"a": {"$regex": "x"}}, r"the filter of 'a' has the operator '\$regex', expected one of \$eq, \$ne, \$gt"),
        ({"a": {"b": 1}}, "the filter of 'a' has the operator 'b', expected one of"),
        ({"a": {}}, "the filter of 'a' is empty, expected a value or one of"),
        ({"$and": []}, r"\$and is \[\], expected a list of filters that is not empty"),
        ({"$or": {"a": 1}}, r"\$or is {'a': 1}, expected a list of filters"),
        ({"$or": [1]}, "a part of the filter is 1, expected a dict"),
        ({"$not": [1]}, r"a part of the filter is \[1\], expected a dict"),
        ({"a": {"$gt": True}}, r"the filter of 'a': \$gt is True, expected a number or a str"),
        ({"a": {"$gt": None}}, r"\$gt is None, expected a number or a str"),
        ({"a": {"$lt": [1]}}, r"\$lt is \[1\], expected a number or a str"),
        ({"a": {"$in": "abc"}}, r"\$in is 'abc', expected a list of values"),
        ({"a": {"$in": 3}}, r"\$in is 3, expected a list of values"),
        ({"a": {"$in": [{}]}}, r"\$in is {}, expected a str, number, bool, None, or a list of these"),
        ({"a": {"$exists": 1}}, r"\$exists is 1, expected True or False"),
        ({"a": {"$contains": ["x"]}}, r"\$contains is \['x'\], expected one value of a list, or a part of a str"),
        ({"a": float("nan")}, r"\$eq is nan, expected a str, number"),
    ],
)
def test_invalid_filter_raises(condition: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_filter(condition)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("nested", [lambda inner: {"$not": inner}, lambda inner: {"a": {"$not": inner["a"]}}])
def test_filter_that_is_nested_too_deeply_raises(nested: Any) -> None:
    condition: Any = {"a": 1}
    for _ in range(2000):
        condition = nested(condition)
    with pytest.raises(InputError, match="the filter is nested more than 50 levels deep"):
        parse_filter(condition)


def test_function_cannot_change_the_metadata() -> None:
    metadata: dict[str, Any] = {"tags": ["a"]}

    def change(given: dict[str, Any]) -> bool:
        given["tags"].append("b")
        given["more"] = 1
        return True

    assert parse_filter(change)(metadata)
    assert metadata == {"tags": ["a"]}
