"""Classes by name that plugins may add to: losses, students, evaluation tasks."""

from typing import TypeVar

from edgeembed_exporters import registry

from edgeembed.plugins import load_plugins

T = TypeVar("T")


class Registry(registry.Registry[T]):
    """The classes of one kind by name: the product's own, found in one package, and those of plugins.

    Both are imported when a class is first asked for, not before. The product's own come first.
    """

    def _loaded(self) -> dict[str, type[T]]:
        super()._loaded()
        load_plugins()
        return self._classes
