"""Scores of a data set, their comparison with those of a reference model, and averages over published suites."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Score:
    """The main metric of one data set.

    Attributes:
        task: Name of the data set, such as "stsb/test".
        metric: Name of the metric, such as "Spearman x100".
        value: The metric, 0 to 100 (Spearman: -100 to 100; alignment: 0 to 4; uniformity: -8 to 0).
        items: Number of pairs, queries or texts that the metric is computed on.
        details: Further metrics of the data set, by name.
        lower_is_better: Whether lower values are better.
        interval: Bounds of the 95 % confidence interval of the value; None if it was not measured.
        kind: Name of the kind of task, such as "sts"; `evaluate` fills it in.
    """

    task: str
    metric: str
    value: float
    items: int
    details: dict[str, float] = field(default_factory=dict)
    lower_is_better: bool = False
    interval: tuple[float, float] | None = None
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.task}: {self.value:.2f}{self.margin()} ({self.metric})"

    def margin(self, decimals: int = 2) -> str:
        """Return half the width of the confidence interval, such as " ±1.21"; empty without one."""
        if self.interval is None:
            return ""
        return f" ±{(self.interval[1] - self.interval[0]) / 2:.{decimals}f}"


@dataclass(frozen=True)
class ScoreComparison:
    """A score and the reference model's score on the same data set.

    Attributes:
        score: The score.
        reference: The reference model's score.
    """

    score: Score
    reference: Score

    @property
    def percent(self) -> float | None:
        """The score in percent of the reference's; None if lower is better or the reference is not positive."""
        if self.score.lower_is_better or self.reference.value <= 0:
            return None
        return 100 * self.score.value / self.reference.value

    @property
    def difference(self) -> float:
        """The score minus the reference's."""
        return self.score.value - self.reference.value


def compare_scores(scores: Sequence[Score], references: Sequence[Score]) -> tuple[ScoreComparison, ...]:
    """Compare scores with those of a reference model.

    Args:
        scores: The scores.
        references: The reference's scores on the same data sets, in the same order.

    Returns:
        One comparison per data set.

    Raises:
        ValueError: If the data sets differ.
    """
    if [score.task for score in scores] != [score.task for score in references]:
        raise ValueError("the scores are not of the same tasks in the same order")
    return tuple(map(ScoreComparison, scores, references))


@dataclass(frozen=True)
class SuiteScores:
    """Scores on the data sets of a published suite, such as the seven STS sets, with their average.

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
        """The mean over the sets that were evaluated; comparable with papers only if all were."""
        values = [value for value in self.values.values() if value is not None]
        return sum(values) / len(values)

    @property
    def average_of(self) -> str:
        """The label of the average: "Avg." over all sets, otherwise with the number and names of the sets."""
        if len(self.evaluated) == len(self.values):
            return "Avg."
        return f"Avg. ({len(self.evaluated)} of {len(self.values)}: {', '.join(self.evaluated)})"

    def percent_of(self, reference: "SuiteScores") -> float | None:
        """Return the average in percent of another model's over the same sets; None if that is not positive."""
        return 100 * self.average / reference.average if reference.average > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the values and the average as built-in types."""
        return {"values": self.values, "average": self.average, "average_of": self.average_of}


def suite_scores(scores: Sequence[Score], names: Collection[str]) -> SuiteScores | None:
    """Return the scores of a suite among all scores of a model.

    Args:
        scores: All scores of the model.
        names: Names of the suite's sets, in order.

    Returns:
        The scores; None if no set of the suite was evaluated.
    """
    values = {score.task: score.value for score in scores if score.task in names}
    return SuiteScores({name: values.get(name) for name in names}) if values else None
