"""Sentences that every machine has: the first lines of the docstrings of Python's own modules."""

import importlib
import inspect
from collections.abc import Iterator

_DOCUMENTED = ("argparse", "collections", "csv", "email.message", "json", "pathlib", "random", "re", "shutil", "socket")


def docstring_sentences() -> list[str]:
    """Give some hundred different sentences, in well below a second."""
    return list(dict.fromkeys(_lines()))


def _lines() -> Iterator[str]:
    for name in _DOCUMENTED:
        module = importlib.import_module(name)
        for thing in [module, *vars(module).values()]:
            first, *_ = (inspect.getdoc(thing) or "").splitlines() or [""]
            if len(first.split()) > 2:
                yield first
