"""Load recipes by name or from TOML files, and change single settings of them."""

import copy
import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from edgeembed_runtime.errors import InputError, short_repr

from edgeembed.plugins import recipe_folders
from edgeembed.recipe.schema import Recipe
from edgeembed.validation import check, validate

Overrides = Mapping[str, Any] | Sequence[str]
"""Settings to change: values by dotted name, or texts of the form `key=value`."""


@dataclass(frozen=True)
class RecipeSummary:
    """A recipe that comes with edgeembed or with a plugin.

    Attributes:
        name: Its name.
        plugin: Name of the plugin that it belongs to, such as that of a paper; None for edgeembed's own.
        description: What it is for, in a sentence.
        teacher: Name of the model that it distills by default.
    """

    name: str
    plugin: str | None
    description: str
    teacher: str


def recipe_names() -> list[str]:
    """Return the names of the recipes: edgeembed's own, sorted, then those of each plugin."""
    return list(_files())


def recipes() -> list[RecipeSummary]:
    """Return a summary of each recipe: edgeembed's own first, then those of each plugin.

    No plugin is imported, and settings are not checked.
    """
    contents = {name: (plugin, _read(name)) for name, (plugin, _) in _files().items()}
    default = Recipe.model_fields["teacher"].default
    return [
        RecipeSummary(name, plugin, content.get("description", ""), content.get("teacher", default))
        for name, (plugin, content) in contents.items()
    ]


def _files() -> dict[str, tuple[str | None, Traversable]]:
    """Return plugin and file of each recipe by name. Of two with one name the first counts."""
    folders: list[tuple[str | None, Traversable]] = [(None, resources.files("edgeembed") / "recipe")]
    folders += recipe_folders().items()
    found: dict[str, tuple[str | None, Traversable]] = {}
    for plugin, folder in folders:
        for file in sorted(folder.iterdir(), key=lambda each: each.name.removesuffix(".toml")):
            if file.name.endswith(".toml"):
                found.setdefault(file.name.removesuffix(".toml"), (plugin, file))
    return found


def load_recipe(recipe: str | os.PathLike[str] | Recipe, overrides: Overrides = ()) -> Recipe:
    """Load a recipe and validate it.

    Args:
        recipe: Name of a recipe (`edgeembed recipes` lists them), a TOML file, or a recipe to change.
        overrides: Settings to change, by dotted name: `{"student.layers": 2}`, or `["student.layers=2"]` with values
            as in TOML. `stages.0.epochs` reaches into a list; `stages.epochs` is short for the first stage.

    Returns:
        The recipe, with the defaults filled in.

    Raises:
        InputError: If there is no such recipe, it is not TOML, or one of its settings is unknown or invalid.
    """
    if not isinstance(recipe, str | os.PathLike | Recipe):
        raise InputError(f"recipe is {short_repr(recipe)}; expected the name of a recipe, a TOML file, or a Recipe")
    if not isinstance(overrides, Mapping | list | tuple):
        raise InputError(f"overrides is {short_repr(overrides)}; expected a list of key=value, or a dictionary")
    content = recipe.to_dict() if isinstance(recipe, Recipe) else _read(os.fspath(recipe))
    changes = overrides.items() if isinstance(overrides, Mapping) else map(parse_override, overrides)
    for key, value in changes:
        _override(content, key, value)
    return validate(Recipe, content)


def parse_override(override: str) -> tuple[str, Any]:
    """Return the name and the value of a text `key=value`; the value is TOML, or a string if it is not valid TOML.

    Raises:
        InputError: If the name or the value is missing.
    """
    key, equals, value = override.partition("=")
    if not equals or not key:
        raise InputError(f"--set {override} has no value; expected key=value, such as student.layers=2")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


def _read(name: str, derived: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read a recipe merged over the one that it is `based_on`; `derived` are the recipes that are based on this one."""
    try:
        content = tomllib.loads(_read_text(name))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not TOML: {error}") from error
    base = content.pop("based_on", None)
    if base is None:
        return content
    check(isinstance(base, str), "based_on", base, "the name of a recipe, or a TOML file")
    check(base not in (name, *derived), "based_on", base, f"a recipe that is not based on {name} itself")
    return _merged(_read(base, (name, *derived)), content)


def _read_text(name: str) -> str:
    files = _files()
    if name in files:
        return files[name][1].read_text(encoding="utf-8")
    if not Path(name).is_file():
        close = difflib.get_close_matches(name, files, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise InputError(
            f"no recipe called {name}; {hint}expected a name that `edgeembed recipes` lists, or a TOML file"
        )
    try:
        return Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 (byte {error.start}); expected a TOML file") from error


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Merge tables into tables; anything else, also a list of stages, replaces what the base has."""
    merged = dict(base)
    for key, value in changes.items():
        are_tables = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _merged(base[key], value) if are_tables else value
    return merged


def _override(content: dict[str, Any], key: str, value: Any) -> None:
    """Set the value at a dotted name, in place."""
    *path, last = key.split(".")
    if path[:1] == ["stages"] and not (path[1:] and path[1].isdigit()):
        path.insert(1, "0")
    here: Any = content
    for depth, part in enumerate(path):
        if isinstance(here, list):
            here = here[int(part)] if part.isdigit() and int(part) < len(here) else None
        elif isinstance(here, dict):
            is_weight = path[2 : depth + 1] == ["losses", part] and isinstance(here.get(part), int | float)
            here[part] = {"weight": here[part]} if is_weight else here.get(part, {})
            here = here[part]
    if not isinstance(here, dict):
        raise InputError(f"--set {key} is not a setting of this recipe; expected a key such as student.layers")
    here[last] = copy.deepcopy(value)
