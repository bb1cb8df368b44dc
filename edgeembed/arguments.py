"""Checks that several public functions make before any work; importable without torch."""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ParamSpec, TypeVar

from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.storage.atomic import check_output_file, check_output_path
from edgeembed_runtime.storage.files import check_is_local

MAX_SEED = 2**32 - 1  # NumPy's limit

P = ParamSpec("P")
R = TypeVar("R")

# What the parts of an annotation allow, and what an error message calls them.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "None": ((type(None),), "None"),
    "bool": ((bool,), "True or False"),
    "int": ((int,), "an integer"),
    "float": ((int, float), "a number"),
    "Sequence[str]": ((list, tuple), "a list of texts"),
}


def check_argument_types(function: Callable[P, R]) -> Callable[P, R]:
    """Make a public function raise InputError if a number, flag, list of texts or reporter has another type.

    Paths, models, corpora and other data are checked by the functions that read them.
    """
    parameters = inspect.signature(function).parameters

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given = {**dict(zip(parameters, args, strict=False)), **kwargs}
        for name, value in given.items():
            if name in parameters:
                _check_type(name, value, parameters[name].annotation)
        return function(*args, **kwargs)

    return checked


def _check_type(name: str, value: object, annotation: object) -> None:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    parts = [part.rpartition("collections.abc.")[2] for part in text.split(" | ")]
    if any(part.endswith("Reporter") for part in parts):
        if value is not None and not (hasattr(value, "step") and hasattr(value, "note")):
            raise InputError(
                f"{name} is {short_repr(value)}; expected an object with the methods step and note, such as "
                "edgeembed.cli.progress.TerminalReporter()"
            )
        return
    if not all(part in _TYPES for part in parts):
        return
    types = tuple(each for part in parts for each in _TYPES[part][0])
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        expected = " or ".join(_TYPES[part][1] for part in parts)
        raise InputError(f"{name} is {short_repr(value)}; expected {expected}")


def check_integer(name: str, value: object, minimum: int | None = None) -> None:
    """Raise InputError if an argument is not an integer of at least a minimum.

    Args:
        name: The argument's name.
        value: Its value.
        minimum: The smallest valid integer; None allows all.
    """
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if not is_integer or (minimum is not None and value < minimum):  # type: ignore[operator]  # an integer
        expected = "an integer" if minimum is None else f"an integer of at least {minimum}"
        raise InputError(f"{name} is {short_repr(value)}; expected {expected}")


def check_seed(seed: int) -> None:
    """Raise InputError if a seed is not one that torch and NumPy both take."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= MAX_SEED:
        raise InputError(f"seed is {short_repr(seed)}; expected an integer from 0 to {MAX_SEED}")


def check_docstrings() -> None:
    """Raise InputError under `python -OO`, which drops the docstrings that transformers reads when it is imported."""
    if sys.flags.optimize > 1:
        raise InputError("transformers cannot load models under python -OO; expected python, or python -O: omit one O")


def check_path(name: str, value: str | os.PathLike[str]) -> Path:
    """Return a path, after checking that an argument is one on this machine.

    Args:
        name: The argument's name.
        value: Its value.

    Raises:
        InputError: If it is not a path, empty, or a URL.
    """
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise InputError(f"{name} is {short_repr(value)}; expected a path")
    path = Path(value)
    check_is_local(path)
    return path


def check_output(out: str | os.PathLike[str], *, force: bool, inputs: Iterable[Path] = ()) -> Path:
    """Return the path of an output file, after checking that it can be written.

    Args:
        out: The output file.
        force: Whether an existing file may be replaced.
        inputs: Files that are read, which are never replaced.

    Raises:
        InputError: If `out` is not a path, exists and may not be replaced, or is one of the inputs.
    """
    if not isinstance(out, str | os.PathLike) or not os.fspath(out):
        raise InputError(f"out is {short_repr(out)}; expected the path of a file to write")
    path = Path(out)
    check_output_path(path, force=force)
    check_output_file(path)
    if path.resolve() in {file.resolve() for file in inputs}:
        raise InputError(f"{path} is one of the inputs; expected another path for the output")
    return path
