"""Subjects of a benchmark, and the parser of their command-line form `[NAME=][KIND:]WHAT[@PYTHON]`."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import MANIFEST

Adapter = Literal[
    "bundle",
    "sentence-transformer",
    "sentence-transformer-onnx",
    "onnx",
    "model2vec",
    "fastembed",
    "function",
    "nothing",
]
KINDS: tuple[Adapter, ...] = tuple(adapter for adapter in get_args(Adapter) if adapter != "nothing")
_PREFIXES = tuple(f"{kind}:" for kind in KINDS)
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

# Modules whose import is timed as the import stage of the cold start; others are imported while the model loads.
_IMPORTS: dict[str, tuple[str, ...]] = {
    "bundle": ("edgeembed_runtime.encoder", "onnxruntime"),
    "sentence-transformer": ("sentence_transformers",),
    "sentence-transformer-onnx": ("sentence_transformers", "onnxruntime"),
    "onnx": ("numpy", "onnxruntime", "tokenizers"),
    "model2vec": ("model2vec",),
    "fastembed": ("fastembed",),
    "nothing": (),
}
_NUMPY_IMPORTS = ("edgeembed_runtime.encoder", "edgeembed_runtime.backends.numpy")


@dataclass(frozen=True)
class Subject:
    """One encoder to measure.

    Attributes:
        name: Name in the report.
        adapter: Name of the adapter that loads it in the worker process. "nothing" only imports modules and encodes
            nothing: the floor of cold start and memory.
        argument: Argument of the adapter: a folder, a model name (fastembed) or `module:function`. "" is the default
            built-in bundle.
        python: Path of the Python interpreter that runs the worker process.
        modules: Modules imported, and timed, before the model is loaded; None for the adapter's default.
        note: A note for readers of the report.
    """

    name: str
    adapter: Adapter
    argument: str = ""
    python: str = sys.executable
    modules: tuple[str, ...] | None = None
    note: str = ""

    @property
    def imports(self) -> tuple[str, ...]:
        """Modules imported before the model is loaded."""
        if self.modules is not None:
            return self.modules
        if self.adapter == "bundle" and self.argument and _backend(Path(self.argument)) == "numpy":
            return _NUMPY_IMPORTS
        return (self.argument.partition(":")[0],) if self.adapter == "function" else _IMPORTS[self.adapter]

    def for_report(self) -> "Subject":
        """Return the subject with paths relative to the working directory, if they are below it.

        A published report then does not tell where on the machine this directory is.
        """
        return replace(self, argument=_relative(self.argument), python=_relative(self.python))


def check_names(names: Sequence[str], baseline: str | None) -> None:
    """Raise InputError if the names of the subjects are not unique and printable, or do not include the baseline.

    Args:
        names: Names of the subjects.
        baseline: Name of the subject that the others are compared with; None for the first.

    Raises:
        InputError: If there are no subjects, two share a name, a name is empty or unprintable, or the baseline is not
            among them.
    """
    if not names:
        raise InputError("no subjects given; expected one or more encoders to measure")
    _check_printable(names)
    if len(set(names)) < len(names):
        raise InputError(f"subjects share a name: {', '.join(names)}; expected each name once")
    if baseline is not None and baseline not in names:
        raise InputError(f"baseline {baseline} is not among the subjects: {', '.join(names)}")


def parse_subjects(specs: Sequence[str], find_model: Callable[[str], Path]) -> list[Subject]:
    """Return the subjects that the specifications of the command line describe.

    Args:
        specs: Specifications `[NAME=][KIND:]WHAT[@PYTHON]`. NAME is what precedes the first =, unless the
            specification begins with a KIND or is a path that exists. KIND is one of `KINDS`; it is detected from WHAT
            if absent.
            WHAT is a model that `find_model` finds, a model name or folder for fastembed, or `module:function`. PYTHON
            is the path of the Python interpreter that runs the subject.
        find_model: Function that returns the folder of a model by its name or path.

    Returns:
        The subjects. The default name is the last part of the path, or the whole specification if two would be equal.

    Raises:
        InputError: If a specification is invalid, a model or interpreter does not exist, or two names are equal.
    """
    parsed = [_parse(spec) for spec in specs]
    subjects = [_subject(spec, find_model) for spec in parsed]
    names = unique_names([spec.name or _short_name(spec) for spec in parsed], specs)
    given = Counter(spec.name for spec in parsed if spec.name)
    twice = [name for name, count in given.items() if count > 1]
    if twice:
        raise InputError(f"two subjects are called {twice[0]}; expected each name once")
    _check_printable(names)
    return [replace(subject, name=name) for subject, name in zip(subjects, names, strict=True)]


def unique_names(short: Sequence[str], full: Sequence[str]) -> list[str]:
    """Return a unique name for each item: the short name, else the full name, else the short name with a number.

    Args:
        short: The short name of each item.
        full: The full name of each item.

    Returns:
        One name for each item, in the same order.
    """
    longer = [name if short.count(name) == 1 else long for name, long in zip(short, full, strict=True)]
    # Two items with the same full name keep the short one and get numbers.
    names = [name if longer.count(long) > 1 else long for name, long in zip(short, longer, strict=True)]
    return [
        name if names.count(name) == 1 else f"{name} ({names[:place].count(name) + 1})"
        for place, name in enumerate(names)
    ]


def _check_printable(names: Sequence[str]) -> None:
    unprintable = next((name for name in names if not (name.strip() and name.isprintable())), None)
    if unprintable is not None:
        raise InputError(f"{unprintable!r} is empty or contains unprintable characters; expected a printable name")


@dataclass(frozen=True)
class _Spec:
    name: str | None
    kind: Adapter | None
    what: str
    python: str


def _parse(spec: str) -> _Spec:
    if not spec:
        raise InputError("an empty subject given; expected [NAME=][KIND:]WHAT[@PYTHON]")
    if Path(spec).exists():  # a path may contain any of the separators
        return _Spec(None, None, spec, sys.executable)
    what, at, python = spec.partition("@")
    if at and not python:
        raise InputError(f"{spec!r} ends in an @; expected a Python interpreter after it")
    name, equals, rest = what.partition("=")
    if not equals or what.startswith(_PREFIXES) or Path(what).exists():
        name, rest = "", what
    kind, colon, argument = rest.partition(":")
    if colon and kind in KINDS:
        return _Spec(name or None, kind, argument, _interpreter(python, spec))
    if not rest:
        raise InputError(f"{spec!r} names no model; expected [NAME=][KIND:]WHAT[@PYTHON]")
    return _Spec(name or None, None, rest, _interpreter(python, spec))


def _interpreter(python: str, spec: str) -> str:
    if not python:
        return sys.executable
    if not Path(python).is_file():
        raise InputError(f"{spec}: {python} is not a file; expected a Python interpreter after the @")
    return str(Path(python).absolute())  # not resolved: Python finds its venv through the symbolic link


def _subject(spec: _Spec, find_model: Callable[[str], Path]) -> Subject:
    kind, what = spec.kind, spec.what
    if kind is None and not Path(what).exists() and _FUNCTION.fullmatch(what):
        kind = "function"
    if kind == "function":
        if not _FUNCTION.fullmatch(what):
            raise InputError(
                f"{what} is not a function; expected module:function, which takes texts and returns embeddings"
            )
        return Subject("", kind, what, spec.python)
    if kind == "fastembed":
        return Subject("", kind, str(Path(what).resolve()) if Path(what).is_dir() else what, spec.python)
    folder = find_model(what).resolve()
    return Subject("", kind or _detect_kind(folder), str(folder), spec.python)


def _detect_kind(folder: Path) -> Adapter:
    if (folder / MANIFEST).is_file():
        return "bundle"
    if _model_type(folder) == "model2vec":
        return "model2vec"
    has_torch = any((folder / file).is_file() for file in ("modules.json", "config.json"))
    return "onnx" if (folder / "model.onnx").is_file() and not has_torch else "sentence-transformer"


def _model_type(folder: Path) -> str | None:
    return _json_value(folder / "config.json", "model_type")


def _backend(bundle: Path) -> str | None:
    return _json_value(bundle / MANIFEST, "backend")


def _json_value(file: Path, name: str) -> str | None:
    """Return a value of a JSON object in a file; None if there is no such file, object or value."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content.get(name) if isinstance(content, dict) else None


def _relative(path: str) -> str:
    here = Path.cwd()
    return Path(path).relative_to(here).as_posix() if Path(path).is_relative_to(here) else path


def _short_name(spec: _Spec) -> str:
    return spec.what if _FUNCTION.fullmatch(spec.what) else Path(spec.what).resolve().name
