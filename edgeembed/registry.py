"""Classes by name that plugins may add to: losses, students, evaluation tasks."""

from typing import TypeVar

from edgeembed_exporters import registry

from edgeembed.plugins import load_plugins

T = TypeVar("T")


class Registry(registry.Registry[T]):
    """The classes of one kind by name: the product's own, which come first, and those of plugins.

    Args:
        kind: What one of them is called in messages, such as "loss".
        package: The package of the product's own, such as "edgeembed.losses".
        part: The module or package of a plugin that registers its own, such as "losses".
    """

    def __init__(self, kind: str, package: str, part: str) -> None:
        super().__init__(kind, package)
        self._part = part

    def _loaded(self) -> dict[str, type[T]]:
        load_plugins(self._part)
        return super()._loaded()
