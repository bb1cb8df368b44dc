"""The main figure of a task, and how it stands beside a reference's."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Score:
    """One task's main figure.

    Attributes:
        task: What was scored, such as "stsb/test".
        metric: What the figure is, such as "Spearman x100".
        value: The figure, 0 to 100 (Spearman: -100 to 100; alignment: 0 to 4; uniformity: -8 to 0).
        items: Pairs, queries or texts behind it.
        details: Further figures of the same run, by metric.
        lower_is_better: Whether a lower figure is the better one.
    """

    task: str
    metric: str
    value: float
    items: int
    details: dict[str, float] = field(default_factory=dict)
    lower_is_better: bool = False


@dataclass(frozen=True)
class Comparison:
    """A score beside the reference's score on the same task.

    Attributes:
        score: The score.
        reference: The reference's.
    """

    score: Score
    reference: Score

    @property
    def percent(self) -> float | None:
        """The score as a percentage of the reference's; None where that means nothing.

        It does where the reference scores above 0 and a higher score is better.
        """
        if self.score.lower_is_better or self.reference.value <= 0:
            return None
        return 100 * self.score.value / self.reference.value

    @property
    def difference(self) -> float:
        """The score less the reference's."""
        return self.score.value - self.reference.value


def compare(scores: Sequence[Score], references: Sequence[Score]) -> tuple[Comparison, ...]:
    """Put scores beside a reference's.

    Args:
        scores: Scores.
        references: The reference's, on the same tasks in the same order.

    Returns:
        One comparison a task.

    Raises:
        ValueError: If the tasks differ.
    """
    if [score.task for score in scores] != [score.task for score in references]:
        raise ValueError("the two were not scored on the same tasks")
    return tuple(map(Comparison, scores, references))
