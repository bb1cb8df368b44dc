"""Packages that add losses, students, evaluation tasks and recipes: entry points of the group `edgeembed.plugins`.

The name of an entry point is the plugin's name, its value a package. Its modules, or packages, `losses`, `students` and
`tasks` register what they add; each is imported when something of its kind is looked for. The recipes are the TOML
files in its folder `recipes`. The five systems in `edgeembed.papers` are plugins like any other.
"""

import functools
import importlib
import importlib.util
import pkgutil
import warnings
from importlib import metadata
from pathlib import Path

GROUP = "edgeembed.plugins"


class PluginWarning(UserWarning):
    """A plugin is installed, but cannot be used."""


@functools.cache
def load_plugins(part: str) -> tuple[str, ...]:
    """Import a part of the installed plugins, once, and return the names of those that have it and work.

    One that fails is left out with a warning of one line: a broken package must not break what does not need it.

    Args:
        part: Name of the module or package within each plugin: "losses", "students" or "tasks".
    """
    loaded = []
    for name, package in _entry_points().items():
        module = f"{package}.{part}"
        try:
            if importlib.util.find_spec(module) is None:
                continue
            _import_all(module)
        except Exception as error:  # noqa: BLE001  # any code may run there
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            warnings.warn(
                f"the plugin {name} ({module}) cannot be imported and is left out: {reason}; repair or uninstall it",
                PluginWarning,
                stacklevel=2,
            )
        else:
            loaded.append(name)
    return tuple(loaded)


def _import_all(module: str) -> None:
    """Import a module and, if it is a package, those in it."""
    folder = getattr(importlib.import_module(module), "__path__", ())
    for each in pkgutil.iter_modules(folder, f"{module}."):
        importlib.import_module(each.name)


def recipe_folders() -> dict[str, Path]:
    """Return the folder of recipes of each plugin that has one, by the plugin's name. No plugin is imported."""
    folders = {}
    for name, package in _entry_points().items():
        try:
            spec = importlib.util.find_spec(package)
        except ImportError:
            continue  # `load_plugins` says so
        if spec is not None and spec.origin is not None and (folder := Path(spec.origin).parent / "recipes").is_dir():
            folders[name] = folder
    return folders


def _entry_points() -> dict[str, str]:
    """Return the package of each plugin by the plugin's name, sorted."""
    found = sorted(metadata.entry_points(group=GROUP), key=lambda each: each.name)
    return {each.name: each.module for each in found}
