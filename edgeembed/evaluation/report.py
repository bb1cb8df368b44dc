"""Reports of evaluations: the scores of each model, suite averages, and comparisons with a reference model."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cattrs
from edgeembed_bench.model_info import Parameters
from edgeembed_bench.render import Table, markdown_tables
from edgeembed_bench.subjects import unique_names
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.report import Report, write_text

from edgeembed.evaluation.scores import Score, ScoreComparison, compare_scores
from edgeembed.evaluation.semantic_retrieval import SearchSavings, search_savings
from edgeembed.evaluation.sts import STS_SETS
from edgeembed.evaluation.transfer import TRANSFER_TASKS


@dataclass(frozen=True)
class SuiteScores:
    """Scores on the seven STS sets of SentEval, or on its seven transfer tasks, with their average.

    Attributes:
        values: The score x100 by name of the set; None for a set that was not evaluated.
    """

    values: dict[str, float | None]

    @property
    def evaluated(self) -> tuple[str, ...]:
        """The sets that were evaluated."""
        return tuple(name for name, value in self.values.items() if value is not None)

    @property
    def average(self) -> float:
        """The mean over the sets that were evaluated; comparable with papers only if all seven were."""
        values = [value for value in self.values.values() if value is not None]
        return sum(values) / len(values)

    @property
    def average_of(self) -> str:
        """The label of the average: "Avg." over all seven sets, otherwise with the number and names of the sets."""
        if len(self.evaluated) == len(self.values):
            return "Avg."
        return f"Avg. ({len(self.evaluated)} of {len(self.values)}: {', '.join(self.evaluated)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the values and the average as built-in types."""
        return {"values": self.values, "average": self.average, "average_of": self.average_of}


def suite_scores(scores: Sequence[Score], names: Collection[str] = STS_SETS) -> SuiteScores | None:
    """Return the scores of a suite among all scores of a model.

    Args:
        scores: All scores of the model.
        names: Names of the suite's sets, in order: the seven STS sets, or the seven transfer tasks.

    Returns:
        The scores; None if no set of the suite was evaluated.
    """
    values = {score.task: score.value for score in scores if score.task in names}
    return SuiteScores({name: values.get(name) for name in names}) if values else None


@dataclass(frozen=True)
class ModelEvaluation(Report):
    """Scores of one model, and of the reference model if there is one.

    Attributes:
        model: Name of the model.
        scores: One score per task, in the order of the tasks.
        reference: Name of the reference model; None without one.
        reference_scores: The reference's scores, in the same order; empty without a reference.
        parameters: Parameter counts of the model; None if unknown.
        reference_parameters: Parameter counts of the reference; None if unknown.
    """

    model: str
    scores: tuple[Score, ...]
    reference: str | None = None
    reference_scores: tuple[Score, ...] = ()
    parameters: Parameters | None = None
    reference_parameters: Parameters | None = None

    @property
    def comparisons(self) -> tuple[ScoreComparison, ...]:
        """Each score with the reference's; empty without a reference."""
        return compare_scores(self.scores, self.reference_scores) if self.reference is not None else ()

    @property
    def sts(self) -> SuiteScores | None:
        """The scores on the seven STS sets; None if none was evaluated."""
        return suite_scores(self.scores)

    @property
    def sts_percent(self) -> float | None:
        """The STS average in percent of the reference's over the same sets; None without either."""
        return _percent(self.sts, suite_scores(self.reference_scores))

    @property
    def transfer(self) -> SuiteScores | None:
        """The scores on the seven transfer tasks; None if none was evaluated."""
        return suite_scores(self.scores, TRANSFER_TASKS)

    @property
    def transfer_percent(self) -> float | None:
        """The transfer average in percent of the reference's over the same tasks; None without either."""
        return _percent(self.transfer, suite_scores(self.reference_scores, TRANSFER_TASKS))

    @property
    def savings(self) -> tuple[SearchSavings, ...]:
        """Search time and memory that the model saves in semantic retrieval; empty without it or a reference."""
        return search_savings(self.comparisons)

    def to_dict(self) -> dict[str, Any]:
        """Return scores, suite averages, and comparisons with the reference as built-in types."""
        content = super().to_dict()
        for name, counts in (("parameters", self.parameters), ("reference_parameters", self.reference_parameters)):
            if counts is not None:
                content[name]["inner_parameters"] = counts.inner_parameters
        return content | {
            "percent_of_reference": {each.score.task: each.percent for each in self.comparisons},
            "difference_from_reference": {each.score.task: each.difference for each in self.comparisons},
            "sts": self.sts and self.sts.to_dict() | {"percent_of_reference": self.sts_percent},
            "transfer": self.transfer and self.transfer.to_dict() | {"percent_of_reference": self.transfer_percent},
            "savings": [asdict(each) for each in self.savings],
        }


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
                lines.append(f"  {model.model}, {score.task}: {score.value:.2f} ({score.metric}{relative})")
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
        """The scores as tables: one per kind of task, with a row per model, the reference first."""
        from edgeembed.evaluation.tables import make_tables  # imports this module

        return make_tables(_rows(self.models))

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
        scores, parameters = first.reference_scores, first.reference_parameters
        reference = ModelEvaluation(first.reference, scores, first.reference, scores, parameters, parameters)
        rows = {first.reference: reference} | {name: each for name, each in rows.items() if name != first.reference}
    names = unique_names([Path(name).name or name for name in rows], list(rows))
    return dict(zip(names, rows.values(), strict=True))


def _percent(scores: SuiteScores | None, reference: SuiteScores | None) -> float | None:
    return 100 * scores.average / reference.average if scores and reference and reference.average > 0 else None
