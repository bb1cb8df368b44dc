"""What an evaluation found, and how it stands beside a reference."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Score:
    """One task's main figure.

    Attributes:
        task: What was scored, such as "stsb/test".
        metric: What the figure is, such as "Spearman x100".
        value: The figure, 0 to 100 (Spearman: -100 to 100).
        items: Pairs or queries behind it.
        details: Further figures of the same run, by metric.
    """

    task: str
    metric: str
    value: float
    items: int
    details: dict[str, float] = field(default_factory=dict)


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
        """The score as a percentage of the reference's; None where the reference scores nothing."""
        return 100 * self.score.value / self.reference.value if self.reference.value > 0 else None


@dataclass(frozen=True)
class Evaluation:
    """Scores of one model, and of a reference if there was one.

    Attributes:
        model: What was scored.
        scores: One a task, in the order asked for.
        reference: What it is compared with; None if nothing.
        reference_scores: The reference's scores, task by task; empty without a reference.
    """

    model: str
    scores: tuple[Score, ...]
    reference: str | None = None
    reference_scores: tuple[Score, ...] = ()

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each score beside the reference's; empty without a reference."""
        return compare(self.scores, self.reference_scores) if self.reference is not None else ()

    def as_dict(self) -> dict[str, Any]:
        """Give everything, percentages included, ready for JSON."""
        percent = {comparison.score.task: comparison.percent for comparison in self.comparisons}
        return asdict(self) | {"percent_of_reference": percent}


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
