"""Stages of the pipelines as DVC resolves them, so that tests can read them where DVC is not installed."""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_REFERENCE = re.compile(r"\$\{([^}]+)\}")


@dataclass(frozen=True)
class Stage:
    """A stage with its references resolved.

    Attributes:
        name: Its name, with the pipeline's and, if there are several, its key.
        commands: Its shell commands.
        deps: Files and folders that it depends on, relative to the repository.
        outs: Files and folders that it writes.
        params: Names of the parameters that it depends on, by file.
    """

    name: str
    commands: list[str]
    deps: list[str]
    outs: list[str]
    params: dict[str, list[str]]


def read_stages(folder: Path) -> Iterator[Stage]:
    """Yield the stages of the pipeline in a folder."""
    content = yaml.safe_load((folder / "dvc.yaml").read_text(encoding="utf-8"))
    known: dict[str, Any] = {}
    for file in [folder / "params.yaml", *(folder / each for each in content["vars"])]:
        if file.is_file():
            known |= yaml.safe_load(file.read_text(encoding="utf-8"))
    for name, definition in content["stages"].items():
        for key, values in _instances(definition, known):
            resolved = _resolve(definition.get("do", definition), known | values)
            yield _stage(f"{folder.name}:{name}{key}", resolved)


def _instances(definition: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if "foreach" in definition:
        for key, item in _value(definition["foreach"], known).items():
            yield f"@{key}", {"key": key, "item": item}
    elif "matrix" in definition:
        names = list(definition["matrix"])
        for values in itertools.product(*(_value(each, known) for each in definition["matrix"].values())):
            yield f"@{'-'.join(map(str, values))}", {"item": dict(zip(names, values, strict=True))}
    else:
        yield "", {}


def _stage(name: str, resolved: Mapping[str, Any]) -> Stage:
    commands = resolved["cmd"] if isinstance(resolved["cmd"], list) else [resolved["cmd"]]
    outs = [path for kind in ("outs", "metrics") for each in resolved.get(kind, []) for path in each]
    params = {file: names for each in resolved.get("params", []) for file, names in each.items()}
    return Stage(name, commands, resolved.get("deps", []), outs, params)


def _resolve(value: Any, known: Mapping[str, Any]) -> Any:  # YAML
    if isinstance(value, Mapping):
        return {_resolve(key, known): _resolve(each, known) for key, each in value.items()}
    if isinstance(value, list):
        return [_resolve(each, known) for each in value]
    return _REFERENCE.sub(lambda match: str(_find(match[1], known)), value) if isinstance(value, str) else value


def _value(value: Any, known: Mapping[str, Any]) -> Any:  # YAML
    """Return a list or mapping, or the one that a reference is to."""
    return _find(value[2:-1], known) if isinstance(value, str) else value


def _find(name: str, known: Mapping[str, Any]) -> Any:  # YAML
    found: Any = known
    for part in name.split("."):
        found = found[part]
    return found
