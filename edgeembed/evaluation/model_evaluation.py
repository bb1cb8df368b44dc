"""The scores of one model, beside those of the reference model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from edgeembed_bench.model_info import Parameters
from edgeembed_runtime.report import Report

from edgeembed.evaluation.scores import Score, ScoreComparison, SuiteScores, compare_scores


@dataclass(frozen=True)
class ModelEvaluation(Report):
    """Scores of one model, and of the reference model if there is one.

    Attributes:
        model: Name of the model.
        scores: One score per data set, in the order of the tasks.
        reference: Name of the reference model; None without one.
        reference_scores: The reference's scores, in the same order; empty without a reference.
        parameters: Parameter counts of the model; None if unknown.
        reference_parameters: Parameter counts of the reference; None if unknown.
        suites: Scores on the published suites that were evaluated, by kind of task: `suites["sts"].average`.
        reference_suites: The same of the reference.
    """

    model: str
    scores: tuple[Score, ...]
    reference: str | None = None
    reference_scores: tuple[Score, ...] = ()
    parameters: Parameters | None = None
    reference_parameters: Parameters | None = None
    suites: dict[str, SuiteScores] = field(default_factory=dict)
    reference_suites: dict[str, SuiteScores] = field(default_factory=dict)

    @property
    def comparisons(self) -> tuple[ScoreComparison, ...]:
        """Each score with the reference's; empty without a reference."""
        return compare_scores(self.scores, self.reference_scores) if self.reference is not None else ()

    def suite_percent(self, kind: str) -> float | None:
        """Return the average of a suite in percent of the reference's over the same sets; None without either.

        Args:
            kind: Name of the kind of task, such as "sts".
        """
        own, reference = self.suites.get(kind), self.reference_suites.get(kind)
        return own.percent_of(reference) if own and reference else None

    def of_kind(self, kind: str) -> "ModelEvaluation":
        """Return the evaluation with the scores of one kind of task only."""
        return replace(
            self,
            scores=tuple(score for score in self.scores if score.kind == kind),
            reference_scores=tuple(score for score in self.reference_scores if score.kind == kind),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return scores, suite averages, and comparisons with the reference as built-in types."""
        content = super().to_dict()
        for name, counts in (("parameters", self.parameters), ("reference_parameters", self.reference_parameters)):
            if counts is not None:
                content[name]["inner_parameters"] = counts.inner_parameters
        return content | {
            "percent_of_reference": {each.score.task: each.percent for each in self.comparisons},
            "difference_from_reference": {each.score.task: each.difference for each in self.comparisons},
            "suites": {
                kind: suite.to_dict() | {"percent_of_reference": self.suite_percent(kind)}
                for kind, suite in self.suites.items()
            },
            "reference_suites": {kind: suite.to_dict() for kind, suite in self.reference_suites.items()},
        }


Rows = Mapping[str, ModelEvaluation]
"""The models by the name that the tables show, the reference first."""
