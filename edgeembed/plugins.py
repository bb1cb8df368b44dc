"""Packages that add losses, students, evaluation tasks and recipes: entry points of the group `edgeembed.plugins`.

The name of an entry point is the plugin's name, its value a package. Importing the package registers what it adds; the
recipes are the TOML files in its folder `recipes`. The five systems in `edgeembed.papers` are plugins like any other.
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


def import_modules(package: str) -> None:
    """Import every module of a package and of those in it, so that all that it registers is there.

    A plugin of several modules calls it in its `__init__.py`, as `import_modules(__name__)`.

    Args:
        package: Name of the package, which is imported or is being imported.
    """
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)


@functools.cache
def load_plugins() -> tuple[str, ...]:
    """Import the installed plugins, once, and return the names of those that work.

    One that fails is left out with a warning of one line: a broken package must not break what does not need it.
    """
    loaded = []
    for name, package in _entry_points().items():
        try:
            importlib.import_module(package)
        except Exception as error:  # noqa: BLE001  # any code may run there
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            warnings.warn(
                f"the plugin {name} ({package}) cannot be imported and is left out: {reason}; repair or uninstall it",
                PluginWarning,
                stacklevel=2,
            )
        else:
            loaded.append(name)
    return tuple(loaded)


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
