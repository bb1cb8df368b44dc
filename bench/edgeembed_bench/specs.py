"""Subjects as a person writes them: `[NAME=][KIND:]WHAT[@PYTHON]`."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import MANIFEST

from edgeembed_bench.subjects import ADAPTERS, Adapter, Subject

KINDS = tuple(adapter for adapter in ADAPTERS if adapter != "nothing")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class _Spec:
    name: str | None
    kind: Adapter | None
    what: str
    python: str


def parse_subjects(specs: Sequence[str], find_model: Callable[[str], Path]) -> list[Subject]:
    """Give subjects by what a person calls them.

    Args:
        specs: Each `[NAME=][KIND:]WHAT[@PYTHON]`. KIND is one of `KINDS`, and found by a look at WHAT if absent; WHAT
            is any name that `find_model` takes, for fastembed a model's name or folder, or `module:function`; PYTHON
            is the interpreter of the environment that it lives in.
        find_model: Returns the folder of a model by its name or path.

    Returns:
        The subjects, named by the last part of their path, or by all of it where two would be alike.

    Raises:
        InputError: If there is no such kind, model or interpreter, or two were given the same name.
    """
    read = [_read(spec) for spec in specs]
    subjects = [_subject(spec, find_model) for spec in read]
    names = told_apart([spec.name or _short(spec) for spec in read], specs)
    given = Counter(spec.name for spec in read if spec.name)
    twice = [name for name, count in given.items() if count > 1]
    if twice:
        raise InputError(f"two subjects are called {twice[0]}; expected each name once")
    odd = next((name for name in names if not name.isprintable()), None)
    if odd is not None:
        raise InputError(f"{odd!r} cannot be shown; expected a name of printable characters")
    return [replace(subject, name=name) for subject, name in zip(subjects, names, strict=True)]


def _read(spec: str) -> _Spec:
    if not spec:
        raise InputError("an empty subject given; expected [NAME=][KIND:]WHAT[@PYTHON]")
    if Path(spec).exists():  # whatever signs its path has
        return _Spec(None, None, spec, sys.executable)
    what, at, python = spec.partition("@")
    if at and not python:
        raise InputError(f"{spec!r} ends in an @; expected a Python interpreter after it")
    name, equals, rest = what.partition("=")
    if not equals or "/" in name or ":" in name:
        name, rest = "", what
    kind, colon, argument = rest.partition(":")
    if colon and kind in KINDS:
        return _Spec(name or None, cast("Adapter", kind), argument, _interpreter(python, spec))
    if not rest:
        raise InputError(f"{spec!r} names no model; expected [NAME=][KIND:]WHAT[@PYTHON]")
    return _Spec(name or None, None, rest, _interpreter(python, spec))


def _interpreter(python: str, spec: str) -> str:
    if not python:
        return sys.executable
    if not Path(python).is_file():
        raise InputError(f"{spec}: {python} is no file; expected a Python interpreter after the @")
    return str(Path(python).absolute())  # not resolved: a link in a venv is what makes it one


def _subject(spec: _Spec, find_model: Callable[[str], Path]) -> Subject:
    kind, what = spec.kind, spec.what
    if kind is None and not Path(what).exists() and _FUNCTION.fullmatch(what):
        kind = "function"
    if kind == "function":
        if not _FUNCTION.fullmatch(what):
            raise InputError(f"{what} is no function; expected module:function, which takes texts and gives vectors")
        return Subject("", kind, what, spec.python)
    if kind == "fastembed":
        return Subject("", kind, str(Path(what).resolve()) if Path(what).is_dir() else what, spec.python)
    folder = find_model(what).resolve()
    return Subject("", kind or _kind(folder), str(folder), spec.python)


def _kind(folder: Path) -> Adapter:
    if (folder / MANIFEST).is_file():
        return "bundle"
    if _model_type(folder) == "model2vec":
        return "model2vec"
    has_torch = any((folder / file).is_file() for file in ("modules.json", "config.json"))
    return "onnx" if (folder / "model.onnx").is_file() and not has_torch else "sentence-transformer"


def _model_type(folder: Path) -> str | None:
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content.get("model_type") if isinstance(content, dict) else None


def _short(spec: _Spec) -> str:
    return spec.what if _FUNCTION.fullmatch(spec.what) else Path(spec.what).resolve().name


def told_apart(short: Sequence[str], whole: Sequence[str]) -> list[str]:
    """Give names that are short and differ: the whole name where two short ones are alike, and a number if need be.

    Args:
        short: A short name each.
        whole: The name that it is short for.
    """
    longer = [name if short.count(name) == 1 else long for name, long in zip(short, whole, strict=True)]
    # What is given twice is told apart by its number alone.
    names = [name if longer.count(long) > 1 else long for name, long in zip(short, longer, strict=True)]
    return [
        name if names.count(name) == 1 else f"{name} ({names[:place].count(name) + 1})"
        for place, name in enumerate(names)
    ]
