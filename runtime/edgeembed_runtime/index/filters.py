"""Filters over the metadata of documents, in the syntax of MongoDB and Chroma."""

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.documents import Metadata, copy_metadata, plain_value
from edgeembed_runtime.errors import InputError, short_repr

MetadataFilter: TypeAlias = Mapping[str, Any] | Callable[[Metadata], Any]
Predicate: TypeAlias = Callable[[Metadata], bool]
_Test: TypeAlias = Callable[[Any], bool]

_MISSING = object()
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_FIELD_OPERATORS = ("$eq", "$ne", *_COMPARISONS, "$in", "$nin", "$exists", "$contains", "$not")
_LOGICAL_OPERATORS = ("$and", "$or", "$not")
_MAX_DEPTH = 50


def parse_filter(condition: MetadataFilter) -> Predicate:
    """Return a function that tells whether a document's metadata matches a filter.

    Args:
        condition: A dict: each key is a field with the value that it must equal, or with a dict of operators ($eq, $ne,
            $gt, $gte, $lt, $lte, $in, $nin, $exists, $contains, $not), or is $and or $or with a list of filters, or
            $not with a filter. All keys must match. Or a function of the metadata, which gets a copy.

    Returns:
        The function. A list matches a value, $eq, $in and comparisons as a whole or by one of its items, as in MongoDB.
        Values that cannot be compared do not match: numbers compare with numbers, strings with strings, and a bool
        equals only a bool. A missing field matches nothing but $ne, $nin, $not and {"$exists": False}.

    Raises:
        InputError: If the condition is neither a dict nor a function, has an unknown operator, or an operator has a
            value that it cannot use.
    """
    if isinstance(condition, Mapping):
        return _parse_dict(condition, 0)
    if callable(condition):
        function = condition
        return lambda metadata: bool(function(copy_metadata(metadata)))
    raise InputError(
        f"the filter is {short_repr(condition)}, expected a dict such as {{'year': {{'$gte': 2020}}}}, or a function "
        "of the metadata"
    )


def matching_documents(predicate: Predicate, metadata: Iterable[Metadata], count: int) -> npt.NDArray[np.bool_]:
    """Return (count,) bool: whether each document matches."""
    return np.fromiter(map(predicate, metadata), dtype=np.bool_, count=count)


def _parse_dict(condition: Any, depth: int) -> Predicate:
    if not isinstance(condition, Mapping):
        raise InputError(f"a part of the filter is {short_repr(condition)}, expected a dict")
    if depth > _MAX_DEPTH:
        raise InputError(f"the filter is nested more than {_MAX_DEPTH} levels deep, expected fewer")
    predicates = [_parse_entry(name, value, depth + 1) for name, value in condition.items()]
    return predicates[0] if len(predicates) == 1 else lambda metadata: all(each(metadata) for each in predicates)


def _parse_entry(name: Any, value: Any, depth: int) -> Predicate:
    if not isinstance(name, str):
        raise InputError(f"the filter has the key {short_repr(name)}, expected the name of a field as a str")
    if name == "$not":
        negated = _parse_dict(value, depth)
        return lambda metadata: not negated(metadata)
    if name in ("$and", "$or"):
        if not isinstance(value, list | tuple) or not value:
            raise InputError(f"{name} is {short_repr(value)}, expected a list of filters that is not empty")
        parts = [_parse_dict(each, depth) for each in value]
        combine = all if name == "$and" else any
        return lambda metadata: combine(each(metadata) for each in parts)
    if name.startswith("$"):
        known = ", ".join(_LOGICAL_OPERATORS)
        raise InputError(f"the filter has the operator {short_repr(name)}, expected the name of a field, or {known}")
    test = _parse_field(name, value, depth)
    return lambda metadata: test(metadata.get(name, _MISSING))


def _parse_field(name: str, value: Any, depth: int) -> _Test:
    """Return the test of a field's value, which is _MISSING for a missing field."""
    if not isinstance(value, Mapping):
        return _equals(name, "$eq", value)
    if depth > _MAX_DEPTH:
        raise InputError(f"the filter is nested more than {_MAX_DEPTH} levels deep, expected fewer")
    if not value:
        raise InputError(f"the filter of {name!r} is empty, expected a value or one of {', '.join(_FIELD_OPERATORS)}")
    tests = [_parse_operator(name, each, operand, depth + 1) for each, operand in value.items()]
    return tests[0] if len(tests) == 1 else lambda found: all(test(found) for test in tests)


def _parse_operator(name: str, symbol: Any, operand: Any, depth: int) -> _Test:
    if symbol in ("$eq", "$ne"):
        equals = _equals(name, symbol, operand)
        return equals if symbol == "$eq" else lambda found: not equals(found)
    if symbol in ("$in", "$nin"):
        is_in = _is_in(name, symbol, operand)
        return is_in if symbol == "$in" else lambda found: not is_in(found)
    if symbol in _COMPARISONS:
        return _compares(name, symbol, operand)
    if symbol == "$exists":
        if not isinstance(operand, bool):
            raise _operand_error(name, symbol, operand, "True or False")
        return lambda found: (found is not _MISSING) == operand
    if symbol == "$contains":
        return _contains(name, symbol, operand)
    if symbol == "$not":
        negated = _parse_field(name, operand, depth)
        return lambda found: not negated(found)
    known = ", ".join(_FIELD_OPERATORS)
    raise InputError(f"the filter of {name!r} has the operator {short_repr(symbol)}, expected one of {known}")


def _equals(name: str, symbol: str, operand: Any) -> _Test:
    wanted = _key(_value(name, symbol, operand))
    return _or_any_item(lambda found: found is not _MISSING and _key(found) == wanted)


def _is_in(name: str, symbol: str, operand: Any) -> _Test:
    if isinstance(operand, str | bytes | Mapping) or not isinstance(operand, Iterable):
        raise _operand_error(name, symbol, operand, "a list of values")
    wanted = {_key(_value(name, symbol, each)) for each in operand}
    return _or_any_item(lambda found: found is not _MISSING and _key(found) in wanted)


def _or_any_item(test: _Test) -> _Test:
    """Return a test that a list also passes if one of its items does."""
    return lambda found: test(found) or (isinstance(found, list) and any(map(test, found)))


def _compares(name: str, symbol: str, operand: Any) -> _Test:
    limit = _value(name, symbol, operand)
    kind = _kind(limit)
    if kind not in ("number", "str"):
        raise _operand_error(name, symbol, operand, "a number or a str")
    compare = _COMPARISONS[symbol]
    return _or_any_item(lambda found: _kind(found) == kind and compare(found, limit))


def _contains(name: str, symbol: str, operand: Any) -> _Test:
    part = _value(name, symbol, operand)
    if isinstance(part, list):
        raise _operand_error(name, symbol, operand, "one value of a list, or a part of a str")
    wanted = _key(part)

    def test(found: Any) -> bool:
        if isinstance(found, str):
            return isinstance(part, str) and part in found
        return isinstance(found, list) and any(_key(each) == wanted for each in found)

    return test


def _key(value: Any) -> Any:
    """Return a hashable that is equal for equal values of the same kind: 1 equals 1.0 but not True."""
    return tuple(map(_key, value)) if isinstance(value, list) else (_kind(value), value)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _value(name: str, symbol: str, operand: Any) -> Any:
    try:
        return plain_value(operand)
    except ValueError as error:
        raise _operand_error(name, symbol, operand, "a str, number, bool, None, or a list of these") from error


def _operand_error(name: str, symbol: str, operand: Any, expected: str) -> InputError:
    return InputError(f"the filter of {name!r}: {symbol} is {short_repr(operand)}, expected {expected}")
