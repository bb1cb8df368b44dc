"""The report of an evaluation: the scores of models on the same tasks, as lines, tables and JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cattrs
from edgeembed_bench.render import Table, markdown_tables
from edgeembed_bench.subjects import unique_names
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.report import Report, write_text

from edgeembed.evaluation.model_evaluation import ModelEvaluation
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import TASKS, EvaluationTask


@dataclass(frozen=True, repr=False)
class EvaluationReport(Report):
    """Scores of models on the same tasks, beside those of a reference model if there is one.

    `to_json` and `to_markdown` return it as text and write files; a notebook shows its tables.

    Attributes:
        models: One evaluation per model, in the order in which the models were given.
    """

    models: tuple[ModelEvaluation, ...]

    def __repr__(self) -> str:
        """Return one line for the report and one per model and task: the score, in percent of the reference's."""
        lines = [f"EvaluationReport: models {len(self.models)}, scores {len(self.models[0].scores)}"]
        for model in self:
            percents = [each.percent for each in model.comparisons] or [None] * len(model.scores)
            for score, percent in zip(model.scores, percents, strict=True):
                relative = "" if percent is None else f", {percent:.1f} % of {model.reference}"
                value = f"{score.value:.2f}{score.margin()}"
                lines.append(f"  {model.model}, {score.task}: {value} ({score.metric}{relative})")
        return "\n".join(lines)

    def __getitem__(self, name: str) -> ModelEvaluation:
        for model in self.models:
            if model.model == name:
                return model
        raise InputError(f"no model {name!r} in the report; expected one of: {', '.join(each.model for each in self)}")

    def __iter__(self) -> Iterator[ModelEvaluation]:
        return iter(self.models)

    @property
    def tables(self) -> list[Table]:
        """The scores as tables: those of each kind of task, with a row per model, the reference first."""
        rows, tables = _rows(self.models), []
        for kind in dict.fromkeys(score.kind for score in self.models[0].scores):
            of_kind = {name: model.of_kind(kind) for name, model in rows.items()}
            # The plugin of a report's task may not be installed here.
            tables += TASKS[kind].tables(of_kind) if kind in TASKS else EvaluationTask.tables(of_kind)
        return tables

    def check_tasks(self, model: str, scores: Sequence[Score]) -> None:
        """Check that the models of this report were scored on the tasks of another model.

        Args:
            model: Name of the other model.
            scores: Its scores.

        Raises:
            InputError: If a task, its metric or its number of items differs, or the order of the tasks.
        """
        earlier, given = ([(s.task, s.metric, s.items) for s in each] for each in (self.models[0].scores, scores))
        for task, metric, items in sorted({*earlier} ^ {*given}):
            has, lacks = (
                ("the earlier report", model) if (task, metric, items) in earlier else (model, "the earlier report")
            )
            raise InputError(
                f"{has} was scored on {task} ({metric}, {items:,} items), {lacks} was not; expected the same tasks"
            )
        if earlier != given:
            order = ", ".join(task for task, _, _ in earlier)
            raise InputError(f"the tasks are in another order than in the earlier report; expected {order}")

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluations as built-in types, in the list "models"."""
        return {"models": [model.to_dict() for model in self]}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the report as JSON, and write it to a file if a path is given.

        Args:
            path: File to write, UTF-8; an existing one is replaced. None writes no file.

        Returns:
            An object for one model, a list of objects for several.

        Raises:
            InputError: If the file cannot be written.
        """
        content = self.to_dict()["models"]
        text = json.dumps(content[0] if len(content) == 1 else content, indent=2, ensure_ascii=False)
        return write_text(text, path)

    def _markdown(self) -> str:
        return markdown_tables(self.tables) + "\n"


def read_evaluation(file: str | Path) -> EvaluationReport:
    """Read a report from a file.

    Args:
        file: A JSON file that `EvaluationReport.to_json` or `edgeembed evaluate --out` wrote.

    Raises:
        InputError: If the file cannot be read, or is not a valid report.
    """
    expected = "expected a file that edgeembed evaluate --out wrote"
    try:
        content = json.loads(Path(file).read_text(encoding="utf-8"))
        models = cattrs.structure(content if isinstance(content, list) else [content], tuple[ModelEvaluation, ...])
    except cattrs.BaseValidationError as error:
        problem = next(iter(cattrs.transform_error(error)), str(error))
        raise InputError(f"{file} is not a valid report: {problem}; {expected}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}; {expected}") from error
    if not models:
        raise InputError(f"{file} has no models; {expected}")
    return EvaluationReport(models)


def _rows(models: Sequence[ModelEvaluation]) -> dict[str, ModelEvaluation]:
    """Return the rows of the tables by unique short names, the reference first if there is one."""
    first = models[0]
    rows = {each.model: each for each in models}
    if first.reference is not None:
        scores, parameters, suites = first.reference_scores, first.reference_parameters, first.reference_suites
        reference = ModelEvaluation(
            first.reference, scores, first.reference, scores, parameters, parameters, suites, suites
        )
        rows = {first.reference: reference} | {name: each for name, each in rows.items() if name != first.reference}
    names = unique_names([Path(name).name or name for name in rows], list(rows))
    return dict(zip(names, rows.values(), strict=True))
