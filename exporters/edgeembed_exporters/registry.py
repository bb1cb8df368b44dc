"""Classes by name: each kind of part (precisions, losses, students) has one registry that everything reads."""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from edgeembed_runtime.errors import InputError

T = TypeVar("T")


class Registry(Generic[T]):
    """The classes of one kind by name, which the modules of one package register.

    The modules are imported when a class is first asked for, not before.

    Args:
        kind: What one of them is called in messages, such as "loss".
        package: The package, such as "edgeembed.losses".
    """

    def __init__(self, kind: str, package: str) -> None:
        self._kind = kind
        self._package = package
        self._classes: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Return a class decorator that registers a class.

        Args:
            name: Its name, by which recipes and commands call it.

        Raises:
            InputError: If another class has the name.
        """

        def add(registered: type[T]) -> type[T]:
            if (other := self._classes.get(name, registered)) is not registered:
                raise InputError(
                    f"the {self._kind} {name} of {registered.__module__} is registered already, by {other.__module__}; "
                    "expected a name of its own"
                )
            self._classes[name] = registered
            return registered

        return add

    def __getitem__(self, name: str) -> type[T]:
        known = self._loaded()
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise InputError(f"no {self._kind} is called {name}; {hint}expected one of: {', '.join(known)}")
        return known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._loaded()

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def items(self) -> list[tuple[str, type[T]]]:
        """Return names and classes, in the order of their modules."""
        return list(self._loaded().items())

    def _loaded(self) -> dict[str, type[T]]:
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__, f"{self._package}."):
            importlib.import_module(module.name)
        return self._classes
