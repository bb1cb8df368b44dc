"""Docstrings of the standard library and of installed packages, found without running any code.

Modules are parsed, not imported. The exception is a short list of C modules of the standard library: they have no
source to parse, and importing them has no side effects.
"""

import ast
import contextlib
import gc
import importlib
import inspect
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.sentences import split_sentences

_COMPILED_MODULES = (
    *("array", "binascii", "bisect", "builtins", "bz2", "cmath", "collections", "csv", "datetime"),
    *("functools", "gc", "heapq", "io", "itertools", "lzma", "math", "operator", "os", "random", "re"),
    *("select", "signal", "socket", "sqlite3", "ssl", "struct", "sys", "threading", "time", "unicodedata"),
    *("weakref", "zlib"),
)
_OTHER_ORIGINS = {"builtins": ("io", "_io"), "os": ("posix", "nt")}
"""Other modules that the public members of a C module are defined in, besides itself and its underscored name."""

_SKIPPED_FOLDERS = {"dist-packages", "idlelib", "site-packages", "test", "tests", "vendor", "vendored"}

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Docstring:
    """The docstring of a public module, class or function.

    Attributes:
        name: The dotted path, such as `json.decoder.JSONDecoder.decode`. Built-ins have no module: `str.split`.
        text: The docstring without its indentation.
    """

    name: str
    text: str

    @property
    def summary(self) -> str:
        """The first sentence of natural language; empty if there is none."""
        return next(split_sentences(self.text), "")


def docstrings(modules: Sequence[str] | None = None, *, standard_library_only: bool = False) -> Iterator[Docstring]:
    """Yield the docstrings of the standard library and of the packages that this interpreter can import.

    Only public names are read (no part starts with an underscore), each once; tests and vendored packages are skipped.
    The order is fixed: the standard library, its C modules, then the packages.

    Args:
        modules: The modules to read, with their submodules, such as `["json", "numpy.linalg"]`. None reads all.
        standard_library_only: Whether to skip installed packages.

    Raises:
        InputError: If one of `modules` has no docstring.
    """
    requested = tuple(modules or ())
    missing, seen = set(requested), set()
    for module, docstring in _all_docstrings(requested, standard_library_only=standard_library_only):
        missing -= {name for name in missing if _is_within(module, name)}
        if docstring.name not in seen:
            seen.add(docstring.name)
            yield docstring
    if missing:
        raise InputError(
            f"no docstrings of {', '.join(sorted(missing))} in this Python; "
            "expected modules of the standard library or of installed packages: pydoc:json,numpy"
        )


def _all_docstrings(requested: Sequence[str], *, standard_library_only: bool) -> Iterator[tuple[str, Docstring]]:
    yield from _parsed_docstrings(Path(sysconfig.get_path("stdlib")), requested)
    for module in _COMPILED_MODULES:
        if _is_requested(module, requested):
            yield from ((module, found) for found in _compiled_docstrings(module))
    packages = set() if standard_library_only else {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    for folder in sorted(packages):
        yield from _parsed_docstrings(Path(folder), requested)


def _parsed_docstrings(root: Path, requested: Sequence[str]) -> Iterator[tuple[str, Docstring]]:
    for path, module in _public_modules(root, ""):
        if _is_requested(module, requested):
            yield from ((module, found) for found in _read_module(path, module))


def _public_modules(folder: Path, package: str) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.iterdir()):
        name = path.name.removesuffix(".py")
        if path.is_dir():
            if name.isidentifier() and not name.startswith("_") and name not in _SKIPPED_FOLDERS:
                yield from _public_modules(path, f"{package}{name}.")
        elif path.suffix == ".py" and name == "__init__" and package:
            yield path, package.removesuffix(".")
        elif path.suffix == ".py" and name.isidentifier() and not name.startswith(("_", "test_")):
            yield path, package + name


def _read_module(path: Path, module: str) -> list[Docstring]:
    with _garbage_collection_paused():
        tree = _parse(path)
        return [] if tree is None else list(_documented(tree, module))


@contextlib.contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Pause garbage collection: syntax trees have no cycles, and not scanning them saves a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _parse(path: Path) -> ast.Module | None:
    try:
        source = path.read_bytes()
        if b'"""' not in source and b"'''" not in source:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's code
            return ast.parse(source)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # such as a template, or Python 2
        return None


def _documented(node: _Documented, name: str) -> Iterator[Docstring]:
    """Yield the docstrings of a node and of the public classes, methods and functions in it."""
    text = ast.get_docstring(node)
    if text and _is_unicode(text):
        yield Docstring(name, text)
    if isinstance(node, ast.Module | ast.ClassDef):  # definitions inside a function are not public
        for child in _definitions(node.body):
            if not child.name.startswith("_"):
                yield from _documented(child, f"{name}.{child.name}")


def _definitions(body: Sequence[ast.stmt]) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for statement in body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement
        elif isinstance(statement, ast.If | ast.Try | ast.With):  # as in "if sys.platform == ...:"
            yield from _definitions(statement.body)
            yield from _definitions(getattr(statement, "orelse", []))
            for handler in getattr(statement, "handlers", []):
                yield from _definitions(handler.body)


def _compiled_docstrings(module: str) -> Iterator[Docstring]:
    prefix = "" if module == "builtins" else f"{module}."
    for name, member in sorted(vars(importlib.import_module(module)).items()):
        if not name.startswith("_") and _is_own(member, module):
            yield from _own_docstring(prefix + name, member)
            if inspect.isclass(member):
                for attribute, value in sorted(vars(member).items()):
                    if not attribute.startswith("_"):
                        yield from _own_docstring(f"{prefix}{name}.{attribute}", value)


def _own_docstring(name: str, member: object) -> Iterator[Docstring]:
    text = inspect.getdoc(member)
    if text:
        yield Docstring(name, text)


def _is_own(member: object, module: str) -> bool:
    """Return whether a member of a module is a class or function in C that is defined there."""
    origin = getattr(member, "__module__", None) or ""
    origins = {module, f"_{module}", *_OTHER_ORIGINS.get(module, ())}
    return origin in origins and (inspect.isbuiltin(member) or inspect.isclass(member))


def _is_requested(module: str, requested: Sequence[str]) -> bool:
    return not requested or any(_is_within(module, name) for name in requested)


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
