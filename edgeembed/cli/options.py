"""Options and output files that several commands share, and options made from a settings class."""

import functools
import json
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from edgeembed_exporters.settings import Settings, Unchecked, mark, option_name, spelled_as_options, value_type
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


def settings_options(kind: type[Settings]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command an option for each field of a settings class, in their order.

    The command gets those that the user gave as one argument, `keywords`, by the names of their fields. Messages that
    are made while it runs name settings by their options.

    Args:
        kind: The class.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_keywords(*args: Any, **values: Any) -> Any:
            context = click.get_current_context()
            chosen = {name: values.pop(name) for name in kind.model_fields}
            given = {
                name: value
                for name, value in chosen.items()
                if context.get_parameter_source(name) is not ParameterSource.DEFAULT
            }
            with spelled_as_options():
                return command(*args, keywords=given, **values)

        made: Callable[..., Any] = with_keywords
        for name in reversed(kind.model_fields):
            made = _setting_option(kind, name)(made)
        return made

    return decorate


def _setting_option(kind: type[Settings], name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    field, choices = kind.model_fields[name], kind.choices(name)
    hint, unchecked = value_type(field), mark(field, Unchecked)
    form: dict[str, Any]
    if unchecked is not None:
        form = {"type": SOURCE, "metavar": unchecked.metavar, "multiple": unchecked.is_repeatable}
    elif choices:
        form = {"type": click.Choice(choices)}
    elif hint is bool:
        form = {"is_flag": True}
    elif typing.get_origin(hint) is Mapping:
        form = {"multiple": True, "metavar": "NAME=TEXT", "callback": _named_texts}
    elif typing.get_origin(hint) is Sequence:
        form = {"multiple": True, "type": str}
    else:
        form = {"type": hint}
    repeatable = " Repeatable." if form.get("multiple") else ""
    default = kind.default_text(name)
    text = f"{kind.help(name)}{repeatable}" + (f"  [default: {default}]" if default else "")
    return click.option(option_name(name), name, help=_with_options(kind, text), **form)


def _with_options(kind: type[Settings], text: str) -> str:
    """Return a text in which settings that stand in backticks are named by their options."""
    return re.sub(r"`(\w+)`", lambda found: option_name(found[1]) if found[1] in kind.model_fields else found[0], text)


def _named_texts(_context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    texts = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not name or not equals:
            raise InputError(f"{option.opts[0]} is {each}; expected NAME=TEXT, such as query='query: '")
        texts[name] = text
    return texts


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
