"""Scores of a task, and their comparison with those of a reference model."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Score:
    """The main metric of one task.

    Attributes:
        task: Name of the task, such as "stsb/test".
        metric: Name of the metric, such as "Spearman x100".
        value: The metric, 0 to 100 (Spearman: -100 to 100; alignment: 0 to 4; uniformity: -8 to 0).
        items: Number of pairs, queries or texts that the metric is computed on.
        details: Further metrics of the task, by name.
        lower_is_better: Whether lower values are better.
    """

    task: str
    metric: str
    value: float
    items: int
    details: dict[str, float] = field(default_factory=dict)
    lower_is_better: bool = False


@dataclass(frozen=True)
class ScoreComparison:
    """A score and the reference model's score on the same task.

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
        references: The reference's scores on the same tasks, in the same order.

    Returns:
        One comparison per task.

    Raises:
        ValueError: If the tasks differ.
    """
    if [score.task for score in scores] != [score.task for score in references]:
        raise ValueError("the scores are not of the same tasks in the same order")
    return tuple(map(ScoreComparison, scores, references))
