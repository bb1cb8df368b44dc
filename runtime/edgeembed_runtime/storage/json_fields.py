"""Typed fields out of a JSON object, each problem named in one line."""

import json
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.reading import Folder, sha256_of

# Far more than any of our files needs; what claims more is not read.
_MOST_BYTES = 16 << 20
# What counts anything fits in 64 bits, and so into NumPy's numbers.
_LARGEST = 2**63 - 1
_OWN_SHA256 = "sha256"


def with_own_sha256(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a JSON object and, as `sha256`, the checksum of all of them.

    Args:
        values: The fields; a `sha256` among them does not count.

    Returns:
        The fields and the SHA-256, in hexadecimal, of the object as JSON in ASCII, with sorted keys and without spaces.
    """
    fields = {name: value for name, value in values.items() if name != _OWN_SHA256}
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return {**fields, _OWN_SHA256: sha256_of(canonical.encode())}


class JsonFields:
    """The fields of one JSON object; each method gives one of them, checked.

    Args:
        values: What was read from JSON.
        where: The file, and the place in it, for messages.
        error: The class of error that is raised.

    Raises:
        InputError: Or the class that was given, if `values` is no object.
    """

    def __init__(self, values: object, where: str, error: type[InputError] = InputError) -> None:
        self._where = where
        self._error = error
        if not isinstance(values, dict):
            raise self._error(f"{where} is {_shown(values)}, expected a JSON object; make it again")
        self._values: dict[str, Any] = values

    @classmethod
    def read(cls, path: Folder, error: type[InputError] = InputError) -> "JsonFields":
        """Give the fields of the JSON file at `path`."""
        try:
            with path.open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
        except OSError as problem:
            raise error(f"cannot read {path}: {problem.strerror}; expected a readable file") from problem
        if len(content) > _MOST_BYTES:
            raise error(f"{path} has more than {_MOST_BYTES >> 20} MiB, expected a short JSON file; make it again")
        try:
            return cls(json.loads(content), str(path), error)
        except InputError:
            raise
        except (ValueError, RecursionError) as problem:
            raise error(f"{path} is no valid JSON ({problem}); it may be cut short: make it again") from problem

    def __contains__(self, name: str) -> bool:
        """Return whether there is a field of this name."""
        return name in self._values

    def check_own_sha256(self) -> None:
        """Check that the object is the one that `with_own_sha256` made.

        Raises:
            InputError: Or the class that was given, if one of its fields was changed since.
        """
        expected = with_own_sha256(self._values)[_OWN_SHA256]
        if self.text(_OWN_SHA256) != expected:
            raise self._error(
                f"{self._where} is damaged: its fields have SHA-256 {expected}, expected "
                f"{self.text(_OWN_SHA256)}; make it again"
            )

    def text(self, name: str, choices: Collection[str] = ()) -> str:
        """Give a text, which must be one of `choices` if there are any."""
        expected = f"one of {', '.join(choices)}" if choices else "a text"
        return str(self._take(name, expected, lambda v: _is_text(v) and (not choices or v in choices)))

    def optional_text(self, name: str) -> str | None:
        """Give a text or None."""
        return None if self._take(name, "a text or null", _is_text_or_none) is None else self.text(name)

    def whole(self, name: str, at_least: int = 0, at_most: int = _LARGEST) -> int:
        """Give a whole number from `at_least` to `at_most`."""
        limit = "" if at_most == _LARGEST else f" and at most {at_most}"
        expected = f"a whole number of at least {at_least}{limit}"
        return int(self._take(name, expected, lambda v: _is_whole(v, at_least) and v <= at_most))

    def number(self, name: str) -> float:
        """Give a finite number."""
        return float(self._take(name, "a finite number", _is_number))

    def later_number(self, name: str) -> float | None:
        """Give a finite number or None; None too where the field is missing, since older versions write none."""
        if self._values.get(name) is None:
            return None
        return float(self._take(name, "a finite number or null", _is_number))

    def texts(self, name: str) -> tuple[str, ...]:
        """Give a list of texts."""
        return tuple(self._take(name, "a list of texts", lambda v: isinstance(v, list) and _all_text(v)))

    def later_texts(self, name: str, choices: Collection[str]) -> tuple[str, ...]:
        """Give a list of some of `choices`; an empty one where the field is missing, as older versions write none."""
        if name not in self._values:
            return ()
        expected = f"a list of some of {', '.join(choices)}"
        return tuple(self._take(name, expected, lambda v: _are_some(v, choices)))

    def texts_by_name(self, name: str) -> dict[str, str]:
        """Give an object whose values are texts."""
        return dict(self._take(name, "an object of texts", lambda v: isinstance(v, dict) and _all_text(v.values())))

    def optional_object(self, name: str) -> dict[str, Any] | None:
        """Give an object as it is, or None."""
        value: dict[str, Any] | None
        value = self._take(name, "an object or null", lambda v: v is None or isinstance(v, dict))
        return value

    def later_object(self, name: str) -> dict[str, Any] | None:
        """Give an object as it is, or None; None too where the field is missing, since older versions write none."""
        return None if name not in self._values else self.optional_object(name)

    def child(self, name: str) -> "JsonFields":
        """Give the fields of an object within this one."""
        return JsonFields(self._take(name, "an object", lambda _: True), f"{self._where}: {name!r}", self._error)

    def children(self, name: str) -> list["JsonFields"]:
        """Give the fields of each object in a list."""
        items = self._take(name, "a list of objects", lambda v: isinstance(v, list))
        return [JsonFields(item, f"{self._where}: {name!r} {i}", self._error) for i, item in enumerate(items)]

    def refuse(self, name: str, expected: str) -> InputError:
        """Give the error that says that a field is not what was expected."""
        return self._error(
            f"{self._where}: {name!r} is {_shown(self._values.get(name))}, expected {expected}; make it again"
        )

    def _take(self, name: str, expected: str, is_valid: Callable[[Any], bool]) -> Any:
        if name not in self._values:
            raise self._error(f"{self._where} has no {name!r}, expected {expected}; make it again")
        if not is_valid(self._values[name]):
            raise self.refuse(name, expected)
        return self._values[name]


def _is_whole(value: object, at_least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= at_least


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # which refuses NaN too, and compares whole numbers of any size


def _is_text_or_none(value: object) -> bool:
    return value is None or _is_text(value)


def _is_text(value: object) -> bool:
    """Whether it is a text that can be written: half of a surrogate pair cannot."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _all_text(values: Collection[object]) -> bool:
    return all(_is_text(value) for value in values)


def _are_some(value: object, choices: Collection[str]) -> bool:
    return isinstance(value, list) and bool(value) and all(each in choices for each in value)


def _shown(value: object) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:
        text = "nested too deeply"
    return text if len(text) <= 80 else f"{text[:77]}..."
