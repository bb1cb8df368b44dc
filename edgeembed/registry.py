"""Classes by name that plugins may add to: losses, students, evaluation tasks."""

from typing import TypeVar

from edgeembed_exporters import registry

from edgeembed.plugins import load_plugins

T = TypeVar("T")


class Registry(registry.Registry[T]):
    """The classes of one kind by name: the product's own, which come first, and those of plugins."""

    def _loaded(self) -> dict[str, type[T]]:
        load_plugins()
        return super()._loaded()
