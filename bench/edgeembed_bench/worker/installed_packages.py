"""Packages of a subject, within the worker process: their versions and installed sizes."""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

_REPORTED = ("numpy", "onnxruntime", "tokenizers", "torch", "transformers")


def subject_info(subject: Any, modules: list[str]) -> dict[str, Any]:
    """Return the fields of `ModelInfo` by name, except for the dimension."""
    parameters, embedding_parameters = subject.parameters or (None, None)
    return {
        "python": sys.version.split()[0],
        "versions": _versions(modules),
        "vocabulary_size": subject.vocabulary_size,
        "max_tokens": subject.max_tokens,
        "parameters": parameters,
        "embedding_parameters": embedding_parameters,
        "installed_bytes": _installed_sizes(subject.packages),
    }


def _versions(modules: list[str]) -> dict[str, str]:
    versions = {}
    for name in [
        *(module.partition(".")[0] for module in modules),
        *(name for name in _REPORTED if name in sys.modules),
    ]:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _installed_sizes(packages: list[str]) -> dict[str, int] | None:
    """Return the bytes of installed distributions and all their dependencies, without extras; None if one is absent."""
    sizes: dict[str, int] = {}
    waiting = list(packages)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in sizes:
            continue
        try:
            package = distribution(name)
        except (PackageNotFoundError, ValueError):
            if name in packages or not name:
                return None
            continue  # required on other systems only
        sizes[name] = _installed_bytes(package)
        required = [line.partition(";") for line in package.requires or []]
        waiting += [_distribution_name(line) for line, _, marker in required if "extra" not in marker]
    return sizes or None


def _distribution_name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    return match[0] if match else ""


def _installed_bytes(package: Any) -> int:
    files = [Path(package.locate_file(file)) for file in package.files or []]
    if '"editable": true' in (package.read_text("direct_url.json") or ""):  # its own files are not listed
        spec = importlib.util.find_spec(package.metadata["Name"].replace("-", "_"))
        places = (spec.submodule_search_locations if spec else None) or []
        files = [file for place in places for file in Path(place).rglob("*")]
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")
