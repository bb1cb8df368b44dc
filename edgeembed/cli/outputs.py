"""Files that a command writes if it is asked to: refused before the work if they exist, whole or not there after it."""

from collections.abc import Callable, Mapping
from pathlib import Path

from edgeembed_runtime.storage.writing import new_file, refuse_existing


class Outputs:
    """Output files by what goes into them.

    Args:
        files: A path by name; None for what was not asked for.
        force: Whether to replace what exists.

    Raises:
        InputError: If a file exists and is not to be replaced.
    """

    def __init__(self, files: Mapping[str, Path | None], *, force: bool) -> None:
        self._files = {name: file for name, file in files.items() if file is not None}
        self._force = force
        for file in self._files.values():
            refuse_existing(file, force=force)

    def write(self, name: str, content: Callable[[], str]) -> None:
        """Write a file if it was asked for.

        Args:
            name: Which.
            content: Gives its text; not called if it was not asked for.

        Raises:
            InputError: If it cannot be written.
        """
        if name in self._files:
            with new_file(self._files[name], force=self._force) as file:
                file.write_text(content().rstrip("\n") + "\n", encoding="utf-8")
