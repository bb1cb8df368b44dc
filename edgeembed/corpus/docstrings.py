"""The documentation that every Python carries: docstrings with their names, found without running any code.

Modules are parsed, not imported. The exception is a short list of modules of the standard library that are
written in C: they have no source to parse, and importing them does nothing else.
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
_OTHER_HOMES = {"builtins": ("io", "_io"), "os": ("posix", "nt")}
"""Where C modules get public members from besides themselves and their underscored twins."""

_SKIPPED_FOLDERS = {"dist-packages", "idlelib", "site-packages", "test", "tests", "vendor", "vendored"}

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Docstring:
    """What a public module, class or function says about itself.

    Attributes:
        name: The dotted path, such as `json.decoder.JSONDecoder.decode`; built-ins go without a module:
            `str.split`.
        text: The docstring, its indentation cleaned.
    """

    name: str
    text: str

    @property
    def summary(self) -> str:
        """The first sentence that looks like language; empty where there is none."""
        return next(split_sentences(self.text), "")


def docstrings(modules: Sequence[str] | None = None, *, standard_library_only: bool = False) -> Iterator[Docstring]:
    """Give the docstrings of the standard library and of the packages that this interpreter can import.

    Public names only (no part starts with an underscore), tests and vendored packages left out, each name
    once, always in the same order: the standard library, its C modules, then the packages.

    Args:
        modules: The modules to read, with their submodules, such as `["json", "numpy.linalg"]`; none: all.
        standard_library_only: Whether to leave installed packages out.

    Raises:
        InputError: If one of `modules` has no docstring here.
    """
    wanted = tuple(modules or ())
    missing, seen = set(wanted), set()
    for module, found in _all_docstrings(wanted, standard_library_only=standard_library_only):
        missing -= {name for name in missing if _is_within(module, name)}
        if found.name not in seen:
            seen.add(found.name)
            yield found
    if missing:
        raise InputError(
            f"no docstrings of {', '.join(sorted(missing))} in this Python; "
            "expected modules of the standard library or of installed packages: pydoc:json,numpy"
        )


def _all_docstrings(wanted: Sequence[str], *, standard_library_only: bool) -> Iterator[tuple[str, Docstring]]:
    yield from _parsed_docstrings(Path(sysconfig.get_path("stdlib")), wanted)
    for module in _COMPILED_MODULES:
        if _is_wanted(module, wanted):
            yield from ((module, found) for found in _compiled_docstrings(module))
    packages = set() if standard_library_only else {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    for folder in sorted(packages):
        yield from _parsed_docstrings(Path(folder), wanted)


def _parsed_docstrings(root: Path, wanted: Sequence[str]) -> Iterator[tuple[str, Docstring]]:
    for path, module in _public_modules(root, ""):
        if _is_wanted(module, wanted):
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
    """Spare the collector the syntax trees, which hold no cycles; that saves a third of the time."""
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
    except (
        OSError,
        SyntaxError,
        ValueError,
        RecursionError,
        MemoryError,
    ):  # a template, say, or Python 2
        return None


def _documented(node: _Documented, name: str) -> Iterator[Docstring]:
    """Give the docstrings of a node and of the public classes, methods and functions in it."""
    text = ast.get_docstring(node)
    if text and _is_unicode(text):
        yield Docstring(name, text)
    if isinstance(node, ast.Module | ast.ClassDef):  # what a function defines, only that function can reach
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
    """Tell whether a module's member is a class or function in C that is at home there."""
    home = getattr(member, "__module__", None) or ""
    homes = {module, f"_{module}", *_OTHER_HOMES.get(module, ())}
    return home in homes and (inspect.isbuiltin(member) or inspect.isclass(member))


def _is_wanted(module: str, wanted: Sequence[str]) -> bool:
    return not wanted or any(_is_within(module, name) for name in wanted)


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
