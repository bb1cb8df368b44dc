"""Files that a command writes if it is asked to: refused before the work if they exist, whole or not there after it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_file, check_output_file, check_output_path


class Outputs:
    """Output files by what goes into them.

    Args:
        files: A path by name; None for what was not asked for.
        force: Whether to replace what exists.
        inputs: What the command reads, which is never replaced.

    Raises:
        InputError: If a file exists and is not to be replaced, is read as well, or is named twice.
    """

    def __init__(self, files: Mapping[str, Path | None], *, force: bool, inputs: Sequence[str | Path] = ()) -> None:
        self._files = {name: file for name, file in files.items() if file is not None}
        self._force = force
        taken = {Path(each).resolve() for each in inputs}
        for file in self._files.values():
            check_output_path(file, force=force)
            check_output_file(file)
            if file.resolve() in taken:
                raise InputError(f"{file} is read or written by this very command already; choose another path")
            taken.add(file.resolve())

    def write(self, name: str, content: Callable[[], str]) -> None:
        """Write a file if it was asked for.

        Args:
            name: Which.
            content: Gives its text; not called if it was not asked for.

        Raises:
            InputError: If it cannot be written.
        """
        if name in self._files:
            with atomic_file(self._files[name], force=self._force) as file:
                file.write_text(content().rstrip("\n") + "\n", encoding="utf-8")
