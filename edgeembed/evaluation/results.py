"""All that an evaluation found of one model, beside its reference."""

from dataclasses import asdict, dataclass
from typing import Any

from edgeembed_bench.model_info import Parameters

from edgeembed.evaluation.scores import Comparison, Score, compare
from edgeembed.evaluation.semantic_retrieval import Savings, savings
from edgeembed.evaluation.seven_sets import SevenSets, seven_sets
from edgeembed.evaluation.transfer import TASKS


@dataclass(frozen=True)
class Evaluation:
    """Scores of one model, and of a reference if there was one.

    Attributes:
        model: What was scored.
        scores: One a task, in the order asked for.
        reference: What it is compared with; None if nothing.
        reference_scores: The reference's scores, task by task; empty without a reference.
        parameters: Numbers that the model holds; None if nobody counted.
        reference_parameters: Those of the reference, likewise.
    """

    model: str
    scores: tuple[Score, ...]
    reference: str | None = None
    reference_scores: tuple[Score, ...] = ()
    parameters: Parameters | None = None
    reference_parameters: Parameters | None = None

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each score beside the reference's; empty without a reference."""
        return compare(self.scores, self.reference_scores) if self.reference is not None else ()

    @property
    def sts(self) -> SevenSets | None:
        """The model's row in the papers' table of similarity sets; None if none of the seven was asked for."""
        return seven_sets(self.scores)

    @property
    def sts_percent(self) -> float | None:
        """The average of that row as a percentage of the reference's, over the same sets; None without either."""
        return _percent(self.sts, seven_sets(self.reference_scores))

    @property
    def transfer(self) -> SevenSets | None:
        """The model's row in DistilCSE's table of transfer tasks; None if none of the seven was asked for."""
        return seven_sets(self.scores, TASKS)

    @property
    def transfer_percent(self) -> float | None:
        """The average of that row as a percentage of the reference's, over the same tasks; None without either."""
        return _percent(self.transfer, seven_sets(self.reference_scores, TASKS))

    @property
    def savings(self) -> tuple[Savings, ...]:
        """What the model saves in semantic retrieval beside the reference; empty without either."""
        return savings(self.comparisons)

    def as_dict(self) -> dict[str, Any]:
        """Give everything, percentages included, ready for JSON."""
        found = asdict(self)
        for name, counted in (("parameters", self.parameters), ("reference_parameters", self.reference_parameters)):
            if counted is not None:
                found[name]["inner_parameters"] = counted.inner_parameters
        return found | {
            "percent_of_reference": {each.score.task: each.percent for each in self.comparisons},
            "difference_from_reference": {each.score.task: each.difference for each in self.comparisons},
            "sts": self.sts and self.sts.as_dict() | {"percent_of_reference": self.sts_percent},
            "transfer": self.transfer and self.transfer.as_dict() | {"percent_of_reference": self.transfer_percent},
            "savings": [asdict(each) for each in self.savings],
        }


def _percent(ours: SevenSets | None, theirs: SevenSets | None) -> float | None:
    return 100 * ours.average / theirs.average if ours and theirs and theirs.average > 0 else None
