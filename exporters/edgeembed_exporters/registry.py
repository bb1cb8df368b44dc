"""Classes by name: each kind of part (precisions, losses, students) has one registry that everything reads."""

import difflib
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from edgeembed_runtime.errors import InputError

T = TypeVar("T")


class Registry(Generic[T]):
    """The classes of one kind by name, which the modules of one package register.

    All are imported when the names are first listed. One that is asked for by name needs only the module of that name.

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
        if self._find(name):
            return self._classes[name]
        known = self._loaded()
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
            hint = f"did you mean {close[0]}? " if close else ""
            raise InputError(f"no {self._kind} is called {name}; {hint}expected one of: {', '.join(known)}")
        return known[name]

    def __contains__(self, name: object) -> bool:
        return self._find(name) or name in self._loaded()

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def items(self) -> list[tuple[str, type[T]]]:
        """Return names and classes: the package's own by name, then others by name."""
        return list(self._loaded().items())

    def _find(self, name: object) -> bool:
        """Return whether the package's module of a name, if there is one, registers it."""
        if name not in self._classes and isinstance(name, str) and name.isidentifier():
            module = f"{self._package}.{name}"
            if importlib.util.find_spec(module) is not None:
                importlib.import_module(module)
        return name in self._classes

    def _loaded(self) -> dict[str, type[T]]:
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__, f"{self._package}."):
            importlib.import_module(module.name)
        return dict(sorted(self._classes.items(), key=self._place))

    def _place(self, item: tuple[str, type[T]]) -> tuple[bool, str]:
        name, registered = item
        return not registered.__module__.startswith(f"{self._package}."), name
