"""Settings that are declared once: a field has type, default, limits and help, and everything else derives from it."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import annotated_types
from edgeembed_runtime.errors import InputError, short_repr
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

T = TypeVar("T")

_SPELL: ContextVar[Callable[[str], str]] = ContextVar("spell", default=str)


def spelled(setting: str) -> str:
    """Return a setting's name as the user types it: `max_size_mb` in Python, `--max-size-mb` on the command line."""
    return _SPELL.get()(setting)


def option_name(setting: str) -> str:
    """Return the command-line option of a setting."""
    return f"--{setting.replace('_', '-')}"


@contextmanager
def spelled_as_options() -> Iterator[None]:
    """Let messages name settings by their command-line options."""
    token = _SPELL.set(option_name)
    try:
        yield
    finally:
        _SPELL.reset(token)


@dataclass(frozen=True)
class Unchecked:
    """Mark a setting whose value is checked by the code that reads it, such as a file.

    Attributes:
        expected: What the value is, for the reference.
        metavar: What the command line calls it.
        is_repeatable: Whether the option may be given several times.
    """

    expected: str
    metavar: str
    is_repeatable: bool = False

    def __get_pydantic_core_schema__(self, *_: object) -> core_schema.CoreSchema:
        return core_schema.any_schema()


@dataclass(frozen=True)
class Only:
    """Mark a setting that only one kind of model has.

    Attributes:
        kind: The kind of model, such as "encoder".
        instead: What to do for another kind; `{name}` in it stands for the setting of that name.
    """

    kind: str
    instead: str


class Settings(BaseModel):
    """Immutable settings that accept no unknown names and convert no types.

    A subclass declares each setting as a field with a description. A validator raises InputError and names settings by
    `spelled`.

    Raises:
        InputError: If a setting is unknown, has the wrong type or is out of range.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    if not TYPE_CHECKING:  # so that type checkers see the fields as arguments

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise InputError(_message(type(self), error)) from None

    def replace(self, **changes: Any) -> Self:
        """Return a validated copy with some settings changed.

        Raises:
            InputError: If the changed settings are not valid.
        """
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**{**given, **changes})

    def check_kind(self, kind: str) -> None:
        """Raise InputError if a setting was changed that the model's kind does not have.

        Args:
            kind: "encoder" or "classifier".
        """
        for name, field in type(self).model_fields.items():
            only = mark(field, Only)
            value, default = getattr(self, name), field.get_default(call_default_factory=True)
            if only is not None and only.kind != kind and value is not default and value != default:
                instead = only.instead.format_map({each: spelled(each) for each in type(self).model_fields})
                raise InputError(f"{spelled(name)} is {short_repr(value)}, which is for {only.kind}s; {instead}")

    @classmethod
    def help(cls, name: str) -> str:
        """Return what a setting does. Other settings are in backticks."""
        return cls.model_fields[name].description or ""

    @classmethod
    def default_text(cls, name: str) -> str | None:
        """Return a setting's default, for help and reference; None if there is none to be shown."""
        default = cls.model_fields[name].get_default(call_default_factory=True)
        return str(default) if default else None

    @classmethod
    def choices(cls, name: str) -> tuple[str, ...]:
        """Return the values that a setting may have; none if they cannot be listed."""
        hint = value_type(cls.model_fields[name])
        return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()

    @classmethod
    def expected(cls, name: str) -> str:
        """Return what a setting's value must be."""
        choices = cls.choices(name)
        return f"one of: {', '.join(choices)}" if choices else _expected(cls.model_fields[name])


def mark(field: FieldInfo, kind: type[T]) -> T | None:
    """Return the mark of a kind, such as `Unchecked`, that a field's annotation has."""
    return next((each for each in field.metadata if isinstance(each, kind)), None)


def value_type(field: FieldInfo) -> Any:
    """Return a field's type without `| None`."""
    options = [each for each in typing.get_args(field.annotation) if each is not types.NoneType]
    is_optional = typing.get_origin(field.annotation) in {types.UnionType, typing.Union}
    return options[0] if is_optional and len(options) == 1 else field.annotation


def _message(kind: type[Settings], error: ValidationError) -> str:
    """Return the first error in one line: what was given, and what is expected."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return f"{name} is not a setting; expected one of: {', '.join(kind.model_fields)}"
    return f"{spelled(name)} is {short_repr(first['input'])}; expected {kind.expected(name)}"


def _expected(field: FieldInfo) -> str:
    if (unchecked := mark(field, Unchecked)) is not None:
        return unchecked.expected
    hint = value_type(field)
    origin = typing.get_origin(hint)
    kinds = {Mapping: "texts by name", Sequence: "a list of texts", int: "an integer", float: "a number"}
    kind = {**kinds, str: "a text", bool: "True or False"}[origin or hint]
    example = f", such as {field.examples[0]!r}" if field.examples else ""
    return f"{kind}{bounds(field)}{example}"


def bounds(field: FieldInfo) -> str:
    """Return the limits of a number in words, such as " of at least 1"; empty without limits."""
    low = next((each for each in field.metadata if isinstance(each, annotated_types.Ge | annotated_types.Gt)), None)
    high = next((each for each in field.metadata if isinstance(each, annotated_types.Le | annotated_types.Lt)), None)
    if isinstance(low, annotated_types.Ge) and isinstance(high, annotated_types.Le):
        return f" from {low.ge} to {high.le}"
    parts = []
    if low is not None:
        parts.append(f"of at least {low.ge}" if isinstance(low, annotated_types.Ge) else f"above {low.gt}")
    if high is not None:
        parts.append(f"at most {high.le}" if isinstance(high, annotated_types.Le) else f"below {high.lt}")
    return f" {' and '.join(parts)}" if parts else ""
