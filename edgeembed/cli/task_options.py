"""The options of evaluation tasks, which commands take from the registry: those of plugins are among them."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from edgeembed_runtime.errors import InputError

if TYPE_CHECKING:
    from edgeembed.evaluation.task import EvaluationTask, Setting


class TaskCommand(click.Command):
    """A command that has the options of evaluation tasks, and passes them to its function with its own.

    Args:
        arguments: Those of `click.Command`.
        kinds: Names of the kinds of tasks; None takes all that are registered.
        before: Name of the parameter before which the options are listed.
        options: Those of `click.Command`.
    """

    def __init__(self, *arguments: Any, kinds: Sequence[str] | None = None, before: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._kinds = kinds
        self._before = before

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of the command, with the options of the tasks among them."""
        from edgeembed.evaluation.task import TASKS

        own = super().get_params(ctx)
        place = next(place for place, each in enumerate(own) if each.name == self._before)
        return [
            *own[:place],
            *(option for kind in self.kinds() for option in _options(kind, TASKS[kind])),
            *own[place:],
        ]

    def kinds(self) -> list[str]:
        """Return the names of the kinds of tasks."""
        from edgeembed.evaluation.task import TASKS

        return list(TASKS if self._kinds is None else self._kinds)


@dataclass(frozen=True)
class GivenTasks:
    """The tasks of a command line, whose files are not read yet.

    Attributes:
        tasks: The kind, files and settings of each task, in the order in which they were given.
    """

    tasks: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...]

    @classmethod
    def take(cls, options: dict[str, Any]) -> "GivenTasks":
        """Take the options of tasks out of those of the present command.

        Args:
            options: The values of the command's options by name, in the order in which they were given.

        Raises:
            InputError: If a setting is given without files.
        """
        from edgeembed.evaluation.task import TASKS

        context = click.get_current_context()
        command = context.command
        kinds = {kind.replace("-", "_"): kind for kind in command.kinds()} if isinstance(command, TaskCommand) else {}
        tasks = []
        for name in [each for each in options if each in kinds]:
            kind, files = kinds[name], options.pop(name)
            settings = {setting: options.pop(f"{name}_{setting}") for setting in TASKS[kind].settings()}
            given = [each for each in settings if _is_given(context, f"{name}_{each}")]
            if files:
                tasks.append((kind, files, settings))
            elif given:
                raise InputError(f"{_flag(kind, given[0])} is given without --{kind}; expected files in --{kind}")
        return cls(tuple(tasks))

    @property
    def inputs(self) -> list[Path]:
        """The files and folders that the tasks are read from."""
        from edgeembed.corpus.sources import split_columns

        texts = [text for _, files, settings in self.tasks for text in (*files, *settings.values())]
        return [Path(split_columns(text)[0]) for text in texts if isinstance(text, str)]

    def read(self) -> list["EvaluationTask"]:
        """Read the files.

        Raises:
            InputError: If one cannot be read.
        """
        from edgeembed.evaluation.task import TASKS

        return [TASKS[kind](*files, **settings) for kind, files, settings in self.tasks]


@functools.cache  # click tells by the same objects in which order they were given
def _options(kind: str, task: type["EvaluationTask"]) -> list[click.Option]:
    files = click.Option([f"--{kind}"], multiple=True, metavar=task.metavar, help=f"{task.help} Repeatable.")
    return [files, *(_setting(kind, name, *about) for name, about in task.settings().items())]


def _setting(kind: str, name: str, setting: "Setting", of: type, default: Any) -> click.Option:
    kinds: Mapping[type, Any] = {int: click.IntRange(min=setting.minimum), float: click.FLOAT}
    return click.Option(
        [_flag(kind, name)],
        type=kinds.get(of, click.STRING),
        default=default,
        show_default=default is not None,
        metavar=setting.metavar,
        help=setting.help,
    )


def _flag(kind: str, setting: str) -> str:
    return f"--{kind}-{setting.replace('_', '-')}"


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE
