"""Decide, before anything is imported, whether sentence-transformers may load a model folder.

sentence-transformers imports the classes that a folder's configuration files name. `trust_remote_code=True` allows
that for any class and for code inside the folder, and version 5 does so for local folders even without it. The runtime
itself loads no such folders; the check lives here because the command line and the bench share it.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from edgeembed_runtime.errors import InputError

STUDENT_CLASSES = frozenset(
    {"edgeembed.students.cmow.MatrixEmbedding", "edgeembed.students.transformer.CompactTransformer"}
)
"""The classes outside sentence-transformers that a model folder may name."""

_LIBRARY_CLASS = re.compile(r"sentence_transformers(\.[A-Za-z_][A-Za-z0-9_]*)+")
_MODULES = "modules.json"


def needs_trust(folder: str | os.PathLike[str]) -> bool:
    """Return whether a model folder needs `trust_remote_code`, after checking that it names no foreign code.

    Call this before `SentenceTransformer(folder)`, even if the folder is then loaded without trust.

    Args:
        folder: A sentence-transformers folder, or a plain transformers one without a modules.json.

    Returns:
        True if a module is one of `STUDENT_CLASSES`, which sentence-transformers imports only with trust; then the
        folder holds no Python file at any depth. False if all modules are sentence-transformers' own: load the
        folder without trust, and any Python file in it stays unread.

    Raises:
        InputError: If a configuration file at any depth cannot be read, names a class that is neither
            sentence-transformers' nor in `STUDENT_CLASSES`, has transformers load code (`auto_map`), or points
            outside the folder; or if the folder needs trust and holds a Python file or an adapter.
    """
    files = sorted(_files(Path(folder)))
    configurations = [path for path in files if path.name == _MODULES or _is_configuration(path)]
    named = [name for path in configurations for name in _checked_classes(path)]
    trusted = any(name in STUDENT_CLASSES for name in named)
    if trusted:
        _check_trusted(files, configurations)
    return trusted


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files at any depth, through links to folders too, each folder once."""
    seen = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(parent))
        folders[:] = [name for name in folders if os.path.realpath(os.path.join(parent, name)) not in seen]  # noqa: PTH118
        yield from (Path(parent, name) for name in names)


def _is_configuration(path: Path) -> bool:
    name = path.name.lower()
    return name.endswith(".json") and "config" in name


def _checked_classes(path: Path) -> list[str]:
    """Return the names of the classes that sentence-transformers would import for a configuration file."""
    content = _read(path)
    if path.name == _MODULES:
        names = _module_types(path, content)
    else:
        _check_no_auto_map(path, content)
        names = _nested_types(content)
    for name in names:
        if name not in STUDENT_CLASSES and not _LIBRARY_CLASS.fullmatch(name):
            raise InputError(
                f"{path} names the class {name!r}, which would run code of its own; expected only modules of "
                "sentence-transformers and edgeembed: load such a model yourself, if you trust it"
            )
    return names


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path} cannot be read as JSON: {reason}; expected a folder as sentence-transformers saved it"
        ) from error


def _module_types(path: Path, content: Any) -> list[str]:
    if not isinstance(content, list) or not all(
        isinstance(module, dict) and isinstance(module.get("type"), str) and isinstance(module.get("path"), str)
        for module in content
    ):
        raise InputError(f"{path} is not a list of modules, each with a type and a path; save the model again")
    for module in content:
        parts = PurePosixPath(module["path"]), PureWindowsPath(module["path"])
        if any(part.is_absolute() or part.drive or ".." in part.parts for part in parts):
            raise InputError(f"{path} has a module at {module['path']!r}; expected a path inside the folder")
    return [module["type"] for module in content]


def _nested_types(content: Any) -> list[str]:
    """Return the classes that a Router (`types`) or WordEmbeddings (`tokenizer_class`) configuration names."""
    if not isinstance(content, dict):
        return []
    types = content.get("types")
    names = [name for name in types.values() if isinstance(name, str)] if isinstance(types, dict) else []
    tokenizer = content.get("tokenizer_class")
    return [*names, tokenizer] if isinstance(tokenizer, str) and "." in tokenizer else names


def _check_no_auto_map(path: Path, content: Any) -> None:
    remaining = [content]
    while remaining:
        value = remaining.pop()
        if isinstance(value, dict):
            if value.get("auto_map"):
                raise InputError(
                    f"{path} has an auto_map, by which transformers would run code of the model's own; expected an "
                    "encoder that transformers knows: load such a model yourself, if you trust it"
                )
            remaining += value.values()
        elif isinstance(value, list):
            remaining += value


def _check_trusted(files: list[Path], configurations: list[Path]) -> None:
    """Raise InputError if trust would extend to more than our own classes."""
    for path in files:
        if path.suffix.lower() in {".py", ".pyc"} or path.name == "adapter_config.json":
            raise InputError(
                f"{path} is in the folder of an edgeembed student, which sentence-transformers loads only with trust; "
                "expected no Python file and no adapter there: remove it"
            )
    for path in configurations:
        content = _read(path)
        function = content.get("activation_function") if isinstance(content, dict) else None
        if isinstance(function, str) and "." in function and not function.startswith("torch.nn."):
            raise InputError(f"{path} names the activation function {function!r}; expected one of torch.nn")
