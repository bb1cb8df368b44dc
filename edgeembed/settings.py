"""Plain data, as TOML gives it, into checked dataclasses."""

import dataclasses
import difflib
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from edgeembed_runtime.errors import InputError

T = typing.TypeVar("T")


def require(holds: bool, name: str, given: object, expected: str) -> None:
    """Refuse a setting.

    Raises:
        InputError: If `holds` is false; the message names the setting, what was given and what is expected.
    """
    if not holds:
        raise InputError(f"{name} is {given!r}; expected {expected}")


def build(kind: type[T], content: Any, where: str = "") -> T:
    """Make a dataclass of plain data.

    Args:
        kind: A dataclass whose fields are dataclasses, literals, tuples, mappings of numbers, or scalars.
        content: A table, as TOML gives it.
        where: What to call the table in errors, with a dot at the end.

    Returns:
        The dataclass, its defaults filled in.

    Raises:
        InputError: If a key is unknown or a value is of the wrong type; the message names it.
    """
    if not isinstance(content, dict):
        raise InputError(f"{where.rstrip('.')} is {content!r}; expected a table of settings")
    hints = typing.get_type_hints(kind)
    inner = {
        name: f"{table}.{name}"
        for table, hint in hints.items()
        if dataclasses.is_dataclass(hint)
        for name in typing.get_type_hints(hint)
    }
    for key in content:
        known(key, tuple(hints), where.rstrip(".") or "the recipe", elsewhere=inner)
    values = {key: _convert(hints[key], value, f"{where}{key}") for key, value in content.items()}
    return kind(**values)


def known(key: str, keys: Sequence[str], where: str, *, elsewhere: Mapping[str, str] | None = None) -> None:
    """Refuse an unknown name and suggest the closest known one.

    Args:
        key: The name that was given.
        keys: The known names.
        where: What the message calls the table.
        elsewhere: Names that are known in a table below this one, with their dotted path.

    Raises:
        InputError: If `key` is not among `keys`.
    """
    if key in keys:
        return
    names = {**(elsewhere or {}), **{name: name for name in keys}}
    close = [key] if key in names else difflib.get_close_matches(key, names, n=1)
    hint = f"did you mean {names[close[0]]}?" if close else f"expected one of: {', '.join(sorted(keys))}"
    raise InputError(f"{where} has no setting called {key}; {hint}")


def _convert(hint: Any, value: Any, name: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return build(typing.cast("type[Any]", hint), value, f"{name}.")
    if origin is Literal:
        require(value in arguments, name, value, f"one of: {', '.join(arguments)}")
        return value
    if origin is tuple:
        require(isinstance(value, list), name, value, "a list")
        return tuple(_convert(arguments[0], item, f"{name}[{index}]") for index, item in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        require(isinstance(value, dict), name, value, "a table of numbers")
        return {key: _convert(arguments[1], item, f"{name}.{key}") for key, item in value.items()}
    return _scalar(hint, value, name)


def _scalar(hint: type, value: Any, name: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    named = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    require(type(value) is hint, name, value, named[hint])
    return value
