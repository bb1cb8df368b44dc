"""The base class of evaluation tasks, and their registry, which `evaluate`, its command line and its tables read."""

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin, get_type_hints

from edgeembed_bench.render.tables import Table
from edgeembed_runtime.errors import InputError, short_repr

from edgeembed.arguments import check_integer
from edgeembed.evaluation.encoders import SentenceEncoder
from edgeembed.evaluation.layout import first_scores, table_of_scores, table_of_suite
from edgeembed.evaluation.model_evaluation import Rows
from edgeembed.evaluation.scores import Score
from edgeembed.registry import Registry

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Setting:
    """What the command line says of a setting, beside its type and default: `rows: Annotated[int, Setting("...")]`.

    Attributes:
        help: What the setting does.
        metavar: What the option takes; None shows its type.
        minimum: The smallest value of an integer; None allows all.
    """

    help: str
    metavar: str | None = None
    minimum: int | None = None


class EvaluationTask(ABC):
    """Data sets of one kind: how they are read, how an encoder is scored on them, and how scores are laid out.

    A subclass that is registered as "name" is the option `--name` of `edgeembed evaluate`, which takes files and can be
    repeated; its objects are the tasks that `evaluate` takes. Its constructor takes files, or data sets that were read,
    as positional arguments, reads all of them into `sets`, and has its settings as keyword-only arguments: those that
    are annotated with a `Setting` are the options `--name-setting`.

    Attributes:
        sets: The data sets; each has a `name`, which progress reports show.
        given: The settings that were given, by name: scores are kept for these alone.
    """

    metavar: ClassVar[str]
    """What the option takes, such as "FILE"."""
    help: ClassVar[str]
    """What the option takes, and which metrics it yields; of one or a few sentences."""
    suite: ClassVar[tuple[str, ...]] = ()
    """Names of the data sets of a published suite, over which scores are averaged; empty if there is none."""
    title: ClassVar[str] = "Scores"
    """Title of the suite's table."""
    legend: ClassVar[str] = ""
    """What the values of the suite's table are."""
    measures_time: ClassVar[bool] = False
    """Whether scores have times, which compare only within a run: such a task is not cached, nor added to a report."""

    sets: Sequence[Any]
    given: Mapping[str, object]

    def __new__(cls, *_sources: Any, **settings: Any) -> Self:
        """Record the settings, whatever the constructor does with them."""
        task = super().__new__(cls)
        task.given = settings
        return task

    @abstractmethod
    def score(self, encoder: SentenceEncoder, data: Any) -> Sequence[Score]:
        """Score an encoder on one of the data sets.

        Args:
            encoder: The encoder.
            data: One of `sets`.

        Raises:
            CheckError: If embeddings cannot be scored.
        """

    def suits(self, data: Any, dimension: int | None) -> bool:  # noqa: ARG002
        """Return whether embeddings of a dimension, if it is known, can be scored on a data set."""
        return True

    def complete(self, scores: Mapping[str, Sequence[Score]]) -> Mapping[str, Sequence[Score]]:
        """Return the scores of all models, called once after the last model was scored.

        A task that measures time lets the models take turns here.

        Args:
            scores: The scores on all data sets of this task, by the model's name, in the order in which `score` was
                called.
        """
        return scores

    @classmethod
    def tables(cls, rows: Rows) -> list[Table]:
        """Return the tables of this kind's scores: by default that of the suite, and one of all other data sets.

        Args:
            rows: The models, with the scores of this kind only.
        """
        scores = first_scores(rows)
        others = [at for at, score in enumerate(scores) if score.task not in cls.suite]
        tables = [table_of_suite(cls.title, scores[0].kind, rows, cls.legend)] if len(others) < len(scores) else []
        legends = [f"{scores[at].task}: {scores[at].metric}, {scores[at].items:,} items" for at in others]
        return [*tables, *([table_of_scores("Scores", rows, legends, indices=others, decimals=1)] if others else [])]

    @classmethod
    def settings(cls) -> dict[str, tuple[Setting, type, Any]]:
        """Return what is known of each setting, its type and its default, by its name."""
        hints = get_type_hints(cls.__init__, include_extras=True)
        found = {}
        for name, parameter in inspect.signature(cls.__init__).parameters.items():
            kind, *about = get_args(hints[name]) if get_origin(hints.get(name)) is Annotated else (None,)
            for setting in about:
                if isinstance(setting, Setting):
                    found[name] = (setting, kind if isinstance(kind, type) else str, parameter.default)
        return found

    def check_settings(self, **given: object) -> None:
        """Raise InputError if a setting has another type than its annotation says, or is too small.

        Args:
            given: The settings by name.
        """
        known = self.settings()
        for name, value in given.items():
            setting, kind, _ = known[name]
            if kind is int:
                check_integer(name, value, setting.minimum)
            elif kind is float and (not isinstance(value, int | float) or isinstance(value, bool)):
                raise InputError(f"{name} is {short_repr(value)}; expected a number")

    def check_sources(self, sources: Iterable[object], *types: type) -> list[Any]:
        """Return the positional arguments of the constructor, after checking that they are paths or data sets.

        Args:
            sources: The arguments.
            types: Types of the data sets that the task takes as well.

        Raises:
            InputError: If there are none, or one is anything else.
        """
        items = list(sources)
        if not items:
            raise InputError(f"{type(self).__name__}() has no files; expected one or more paths")
        for item in items:
            if not isinstance(item, (str, os.PathLike, *types)):
                raise InputError(f"{type(self).__name__} is given {short_repr(item)}; expected paths")
        return items


TASKS: Registry[EvaluationTask] = Registry("evaluation task", "edgeembed.evaluation.tasks", "tasks")
"""The kinds of tasks by name: the product's, then those of plugins."""


def kind_of(task: EvaluationTask) -> str:
    """Return the name by which the class of a task is registered.

    Raises:
        InputError: If it is not a registered task.
    """
    for name, each in TASKS.items():
        if type(task) is each:
            return name
    raise InputError(f"a task is {short_repr(task)}; expected objects of registered tasks, such as STS('stsb.tsv')")
