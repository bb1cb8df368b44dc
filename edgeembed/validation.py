"""Validate settings with pydantic and report the first mistake in one line."""

import difflib
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, TypeVar

from edgeembed_exporters.settings import bounds
from edgeembed_runtime.errors import InputError
from pydantic import BaseModel, ConfigDict, ValidationError

SettingsT = TypeVar("SettingsT", bound="Settings")
Location = Sequence[int | str]


class Settings(BaseModel):
    """Immutable settings that accept no unknown names and convert no types.

    A validator of a subclass raises an InputError that starts with the name of one of its fields; the path of the table
    is put before it.

    Raises:
        InputError: If a setting is unknown, has the wrong type or is out of range.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    expected: ClassVar[str] = "a table of settings"
    """What error messages say is expected in place of these settings."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InputError(_message(type(self), error)) from None

    # Tells pydantic to build nested settings without this __init__, so that one error reports their whole path.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def nested_settings(cls) -> dict[str, str]:
        """Return the dotted path of each setting of the tables below, by its last name, for suggestions."""
        return {inner: f"{outer}.{inner}" for outer, below in _tables(cls) for inner in below.model_fields}

    def replace(self: SettingsT, **changes: Any) -> SettingsT:
        """Return a validated copy with some settings changed.

        Raises:
            InputError: If the changed settings are not valid.
        """
        return type(self)(**{**dict(self), **changes})


def validate(kind: type[SettingsT], content: object, table: str = "") -> SettingsT:
    """Build settings from plain data, as TOML represents it.

    Args:
        kind: The class of the settings.
        content: The data, usually a dictionary.
        table: What error messages call the table; empty for a whole recipe.

    Returns:
        The settings, with the defaults filled in.

    Raises:
        InputError: If a setting is unknown, has the wrong type or is out of range. The message names the setting with
            its dotted path, what was given and what is expected.
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise InputError(_message(kind, error, table)) from None


def check(condition: bool, name: str, given: object, expected: str) -> None:
    """Raise an InputError about a setting unless a condition holds.

    Raises:
        InputError: If the condition is false.
    """
    if not condition:
        raise InputError(f"{name} is {given!r}; expected {expected}")


def _message(kind: type[Settings], error: ValidationError, table: str = "") -> str:
    found = error.errors(include_url=False)
    # An unknown name is often the reason why another setting is missing.
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    location = first["loc"]
    path = ".".join(map(str, (*([table] if table else []), *location)))
    if first["type"] == "extra_forbidden":
        return _unknown(_settings_at(kind, location[:-1]), str(location[-1]), path.rpartition(".")[0])
    if first["type"] == "missing":
        return f"{path} is missing; expected {_expected(kind, location)}"
    if first["type"] == "value_error" and isinstance(reason := first["ctx"]["error"], InputError):
        return f"{path}.{reason}" if path else str(reason)
    return f"{path or 'the recipe'} is {first['input']!r}; expected {_expected(kind, location)}"


def _unknown(kind: type[Settings], name: str, table: str) -> str:
    known = {**kind.nested_settings(), **{field: field for field in kind.model_fields}}
    close = [name] if name in known else difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    hint = (
        f"did you mean {known[close[0]]}?"
        if close
        else f"expected one of: {', '.join(sorted(kind.model_fields)) or 'none'}"
    )
    return f"{table or 'the recipe'} has no setting called {name}; {hint}"


def _tables(kind: type[Settings]) -> Iterator[tuple[str, type[Settings]]]:
    """Yield the fields that hold one table of settings."""
    for name, field in kind.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            yield name, field.annotation


def _settings_at(kind: type[Settings], location: Location) -> type[Settings]:
    """Return the class of the table at a location."""
    for name in location:
        if isinstance(name, str):
            kind = next(each for each in _leaves(kind.model_fields[name].annotation) if issubclass(each, Settings))
    return kind


def _leaves(hint: Any) -> Iterator[type]:
    """Yield the classes that a type hint is made of."""
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        yield hint
    for argument in typing.get_args(hint):
        yield from _leaves(argument)


def _expected(kind: type[Settings], location: Location) -> str:
    """Describe the values that are valid at a location."""
    if not location:
        return kind.expected
    if isinstance(location[-1], int):
        field = _settings_at(kind, location[:-2]).model_fields[str(location[-2])]
        return _kind_of_value(typing.get_args(field.annotation)[0])
    field = _settings_at(kind, location[:-1]).model_fields[str(location[-1])]
    return _kind_of_value(field.annotation) + bounds(field)


def _kind_of_value(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return f"one of: {', '.join(map(str, typing.get_args(hint)))}"
    if typing.get_origin(hint) is tuple:
        return "a list"
    leaves = list(_leaves(hint))
    tables = [leaf for leaf in leaves if issubclass(leaf, Settings)]
    if tables:
        return tables[0].expected
    return {int: "an integer", float: "a number", str: "a string", bool: "true or false"}.get(leaves[0], "a value")
