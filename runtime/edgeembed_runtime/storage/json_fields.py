"""Read typed fields of a JSON object; raise a one-line error for a wrong one."""

import json
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.files import sha256_of
from edgeembed_runtime.storage.folder import Folder

# Far more than any file of this project needs.
_MAX_BYTES = 16 << 20
# Integers fit in NumPy's int64.
_MAX_INTEGER = 2**63 - 1
_OWN_SHA256 = "sha256"


def with_own_sha256(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a JSON object plus `sha256`, the checksum of all other fields.

    Args:
        values: The fields; an existing `sha256` is replaced.

    Returns:
        The fields and the SHA-256, in hexadecimal, of the object as JSON in ASCII, with sorted keys and without spaces.
    """
    fields = {name: value for name, value in values.items() if name != _OWN_SHA256}
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return {**fields, _OWN_SHA256: sha256_of(canonical.encode())}


class JsonFields:
    """The fields of one JSON object. Each method validates and returns one field.

    A `nullable_` field must be present but may be null. An `optional_` field may be null or missing.

    Args:
        values: The decoded JSON.
        where: The file, and the position in it, for messages.
        error: The class of error to raise.

    Raises:
        InputError: Or the given class, if `values` is not an object.
    """

    def __init__(self, values: object, where: str, error: type[InputError] = InputError) -> None:
        self._where = where
        self._error = error
        if not isinstance(values, dict):
            raise self._error(f"{where} is {_shown(values)}, expected a JSON object; make it again")
        self._values: dict[str, Any] = values

    @classmethod
    def read(cls, path: Folder, error: type[InputError] = InputError) -> "JsonFields":
        """Read a JSON file.

        Raises:
            InputError: Or the given class, if the file cannot be read, is not a JSON object or has more than 16 MiB.
        """
        try:
            with path.open("rb") as file:
                content = file.read(_MAX_BYTES + 1)
        except OSError as problem:
            raise error(f"cannot read {path}: {problem.strerror}; expected a readable file") from problem
        if len(content) > _MAX_BYTES:
            raise error(f"{path} has more than {_MAX_BYTES >> 20} MiB, expected a short JSON file; make it again")
        try:
            return cls(json.loads(content), str(path), error)
        except InputError:
            raise
        except (ValueError, RecursionError) as problem:
            raise error(f"{path} is not valid JSON ({problem}); it may be truncated: make it again") from problem

    def __contains__(self, name: str) -> bool:
        """Return whether the object has a field of this name."""
        return name in self._values

    def check_own_sha256(self) -> None:
        """Compare the fields with the checksum that `with_own_sha256` added.

        Raises:
            InputError: Or the given class, if a field was changed since.
        """
        actual, expected = with_own_sha256(self._values)[_OWN_SHA256], self.string(_OWN_SHA256)
        if actual != expected:
            raise self._error(
                f"{self._where} is damaged: its fields have SHA-256 {_shown(actual)}, expected {_shown(expected)}; "
                "make it again"
            )

    def string(self, name: str, choices: Collection[str] = ()) -> str:
        """Return a string, which must be one of `choices` if there are any."""
        expected = f"one of {', '.join(choices)}" if choices else "a string"
        return str(self._take(name, expected, lambda v: _is_string(v) and (not choices or v in choices)))

    def nullable_string(self, name: str) -> str | None:
        """Return a string or None."""
        value: str | None = self._take(name, "a string or null", lambda v: v is None or _is_string(v))
        return value

    def optional_string(self, name: str) -> str | None:
        """Return a string or None."""
        return self.nullable_string(name) if name in self else None

    def integer(self, name: str, minimum: int = 0, maximum: int = _MAX_INTEGER) -> int:
        """Return an integer from `minimum` to `maximum`."""
        limit = "" if maximum == _MAX_INTEGER else f" and at most {maximum}"
        expected = f"an integer of at least {minimum}{limit}"
        return int(self._take(name, expected, lambda v: _is_integer(v) and minimum <= v <= maximum))

    def boolean(self, name: str) -> bool:
        """Return true or false."""
        return bool(self._take(name, "true or false", lambda v: isinstance(v, bool)))

    def number(self, name: str) -> float:
        """Return a finite number."""
        return float(self._take(name, "a finite number", _is_number))

    def nullable_number(self, name: str) -> float | None:
        """Return a finite number or None."""
        value = self._take(name, "a finite number or null", lambda v: v is None or _is_number(v))
        return None if value is None else float(value)

    def strings(self, name: str) -> tuple[str, ...]:
        """Return a list of strings."""
        return tuple(self._take(name, "a list of strings", lambda v: isinstance(v, list) and _are_strings(v)))

    def choices(self, name: str, choices: Collection[str]) -> tuple[str, ...]:
        """Return a list of at least one of `choices`."""
        return tuple(self._take(name, f"a list of some of {', '.join(choices)}", lambda v: _are_choices(v, choices)))

    def string_dict(self, name: str) -> dict[str, str]:
        """Return an object whose values are strings."""
        return dict(
            self._take(name, "an object of strings", lambda v: isinstance(v, dict) and _are_strings(v.values()))
        )

    def nullable_object(self, name: str) -> dict[str, Any] | None:
        """Return an object with any content, or None."""
        value: dict[str, Any] | None
        value = self._take(name, "an object or null", lambda v: v is None or isinstance(v, dict))
        return value

    def child(self, name: str) -> "JsonFields":
        """Return the fields of a nested object."""
        return JsonFields(self._take(name, "an object", lambda _: True), f"{self._where}: {name!r}", self._error)

    def children(self, name: str) -> list["JsonFields"]:
        """Return the fields of each object in a list."""
        items = self._take(name, "a list of objects", lambda v: isinstance(v, list))
        return [JsonFields(item, f"{self._where}: {name!r} {i}", self._error) for i, item in enumerate(items)]

    def field_error(self, name: str, expected: str) -> InputError:
        """Return an error that states a field's value and what was expected."""
        return self._error(
            f"{self._where}: {name!r} is {_shown(self._values.get(name))}, expected {expected}; make it again"
        )

    def _take(self, name: str, expected: str, is_valid: Callable[[Any], bool]) -> Any:
        if name not in self._values:
            raise self._error(f"{self._where} has no {name!r}, expected {expected}; make it again")
        if not is_valid(self._values[name]):
            raise self.field_error(name, expected)
        return self._values[name]


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # False for NaN and infinity, and safe for integers of any size


def _is_string(value: object) -> bool:
    """Return whether a value is a string that can be encoded; one with a lone surrogate cannot."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _are_strings(values: Collection[object]) -> bool:
    return all(_is_string(value) for value in values)


def _are_choices(value: object, choices: Collection[str]) -> bool:
    return isinstance(value, list) and bool(value) and all(each in choices for each in value)


def _shown(value: object) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:
        text = "nested too deeply"
    return text if len(text) <= 80 else f"{text[:77]}..."
