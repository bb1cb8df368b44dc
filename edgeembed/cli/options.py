"""Options and output files that several commands share."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_file, check_output_file, check_output_path

from edgeembed.corpus.remote import RemotePath, to_path

Command = TypeVar("Command", bound=Callable[..., Any])

_TEXT = "Text: a file, a folder, a URL (s3://...), - for stdin, or pydoc: for Python's documentation."


class _Source(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """A path or a remote path: that is always a source, and never the text itself."""

    name = "source"

    def convert(self, value: Any, _param: click.Parameter | None, _context: click.Context | None) -> Any:
        return value if isinstance(value, Path | RemotePath) else to_path(value)


SOURCE = _Source()


def _corpus_option(metavar: str, text: str, *, required: bool = True) -> Callable[[Command], Command]:
    return click.option(
        "--corpus",
        "sources",
        multiple=True,
        required=required,
        type=SOURCE,
        metavar=metavar,
        help=f"{text} Repeatable.",
    )


corpus_option = _corpus_option("TEXT", _TEXT)
optional_corpus_option = _corpus_option("TEXT", _TEXT, required=False)
labeled_corpus_option = _corpus_option("[LANGUAGE=]TEXT", f"{_TEXT} With its language before it: de=news.txt.")


def pairs_option(*, required: bool = False) -> Callable[[Command], Command]:
    """Return the option `--pairs`."""
    return click.option(
        "--pairs",
        multiple=True,
        required=required,
        metavar="FILE[#COLUMNS]",
        help="TSV of labeled pairs: anchor, positive, optionally hard_negative; or FILE#column1,column2 of another. "
        "Repeatable.",
    )


wordnet_option = click.option(
    "--wordnet", metavar="FOLDER", help="Add sentences in which words are replaced by synonyms from this WordNet."
)
back_translation_option = click.option(
    "--back-translation",
    nargs=2,
    metavar="THERE BACK",
    help="Add sentences translated into another language by one model, and back by another.",
)


def augmentation_overrides(wordnet: str | None, back_translation: tuple[str, str] | None) -> list[str]:
    """Return the settings of a recipe that the two options change."""
    there, back = back_translation or (None, None)
    values = {"wordnet": wordnet, "forward_model": there, "backward_model": back}
    return [f"augmentation.{name}={json.dumps(value)}" for name, value in values.items() if value is not None]


class Outputs:
    """The optional output files of a command.

    Args:
        files: The path of each output by name; None for an output that was not requested.
        force: Whether existing files are replaced.
        inputs: The files that the command reads; they are never replaced.

    Raises:
        InputError: If a file exists and `force` is not set, is also an input, or is given twice.
    """

    def __init__(self, files: Mapping[str, Path | None], *, force: bool, inputs: Sequence[str | Path] = ()) -> None:
        self._files = {name: file for name, file in files.items() if file is not None}
        self._force = force
        taken = {Path(each).resolve() for each in inputs}
        for file in self._files.values():
            check_output_path(file, force=force)
            check_output_file(file)
            if file.resolve() in taken:
                raise InputError(f"{file} is already an input or output of this command; choose another path")
            taken.add(file.resolve())

    def write(self, name: str, content: Callable[[], str]) -> None:
        """Write an output if it was requested.

        Args:
            name: Name of the output.
            content: Returns the text; called only if the output was requested.

        Raises:
            InputError: If the file cannot be written.
        """
        if name in self._files:
            with atomic_file(self._files[name], force=self._force) as file:
                file.write_text(content().rstrip("\n") + "\n", encoding="utf-8")
