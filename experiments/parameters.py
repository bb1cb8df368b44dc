"""Parameters of a pipeline: shared.yaml beside its folder, and its own params.yaml.

In the values, `$name` stands for another parameter (`$data/eval/stsb/dev.tsv`), and `{name}` for each value of a list
(`$out/simtde/long/{long.rows}-seed-0`). Mappings of options become the arguments of a command of edgeembed.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Any

import click
import yaml

Parameters = dict[str, Any]
_LIST = re.compile(r"\{([A-Za-z][\w.-]*)\}")


def read_parameters(folder: Path) -> Parameters:
    """Read the parameters of the pipeline in a folder.

    Raises:
        click.ClickException: If the folder has no params.yaml, or a `$name` is not a parameter.
    """
    files = (folder.parent / "shared.yaml", folder / "params.yaml")
    for file in files:
        if not file.is_file():
            raise click.ClickException(f"{file} does not exist; expected the folder of a pipeline, such as {folder}")
    shared, own = map(_read_yaml, files)
    parameters = {"name": folder.name, **shared, **own}
    texts = {name: str(value) for name, value in parameters.items() if isinstance(value, str | int | float)}
    try:
        substituted: Parameters = _substitute(parameters, texts)
    except KeyError as error:
        raise click.ClickException(
            f"${error.args[0]} in {folder} is not a parameter; expected one of: {', '.join(sorted(texts))}"
        ) from None
    return substituted


@functools.cache
def _read_yaml(file: Path) -> Parameters:
    content: Parameters = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content


def lookup(parameters: Mapping[str, Any], name: str) -> Any:  # YAML
    """Return the parameter of a dotted name.

    Raises:
        click.ClickException: If there is none.
    """
    value: Any = parameters
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            known = ", ".join(map(str, value)) if isinstance(value, Mapping) else "no more parts"
            raise click.ClickException(f"there is no parameter {name}: expected one of {known} in place of {part}")
        value = value[part]
    return value


def merge(*mappings: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings into mappings; anything else in a later one replaces what an earlier one has."""
    merged: dict[str, Any] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
            merged[key] = merge(merged[key], value) if both else value
    return merged


def expand(text: str, parameters: Mapping[str, Any]) -> list[str]:
    """Return the texts in which each `{name}` is replaced by each value of the list `name`, the first name slowest."""
    names = list(dict.fromkeys(_LIST.findall(text)))
    combinations = itertools.product(*(lookup(parameters, name) for name in names))
    return [_filled(text, dict(zip(names, map(str, each), strict=True))) for each in combinations]


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _LIST.sub(lambda match: values[match[1]], text)


def arguments(options: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[str]:
    """Return the command-line arguments of a mapping of options.

    Args:
        options: Values by the option's name without dashes: True for a flag, a list for a repeated option (with lists
            in it for one of several values), and a mapping for `set`. `arguments` is a list of positional arguments,
            which come first.
        parameters: Where the lists of `{name}` are looked up.
    """
    found = _values(options.get("arguments", []), parameters)
    for name, value in options.items():
        if name == "arguments" or value is None or value is False:
            continue
        if value is True:
            found.append(f"--{name}")
        elif isinstance(value, Mapping):
            found += [part for each in assignments(value) for part in (f"--{name}", each)]
        elif isinstance(value, list) and value and isinstance(value[0], list):
            found += [part for each in value for part in (f"--{name}", *map(_text, each))]
        else:
            found += [part for each in _values(value, parameters) for part in (f"--{name}", each)]
    return found


def assignments(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as texts `key=value`."""
    return [f"{key}={_text(value)}" for key, value in settings.items()]


def _values(value: Any, parameters: Mapping[str, Any]) -> list[str]:  # YAML
    values: Iterable[Any] = value if isinstance(value, list) else [value]
    return [text for each in values for text in expand(_text(each), parameters)]


def _text(value: Any) -> str:  # YAML
    return str(value).lower() if isinstance(value, bool) else str(value)


def _substitute(value: Any, texts: Mapping[str, str]) -> Any:  # YAML
    if isinstance(value, Mapping):
        return {key: _substitute(each, texts) for key, each in value.items()}
    if isinstance(value, list):
        return [_substitute(each, texts) for each in value]
    return Template(value).substitute(texts) if isinstance(value, str) else value
