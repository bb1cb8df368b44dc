"""A stage of a recipe: what it learns, from what, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from edgeembed.settings import known, require

OBJECTIVE_NAMES = (
    "contrastive",
    "contrastive_distillation",
    "cosine",
    "gold_similarity",
    "hidden_states",
    "kl",
    "mae",
    "masked_language",
    "meta",
    "mse",
    "patient",
    "similarity",
    "similarity_mae",
    "token_embedding",
    "triplet",
)
"""The objectives that exist; named here so that a recipe is checked before torch is imported."""

_ALONE = {
    "contrastive": "it reads labelled pairs and not the corpus",
    "gold_similarity": "it reads scored pairs and not the corpus",
    "masked_language": "it reads texts with tokens masked",
    "triplet": "it reads labelled pairs and not the corpus",
}


@dataclass(frozen=True)
class StageSettings:
    """One run of the trainer.

    Attributes:
        objectives: Weight of each objective by name.
        epochs: Passes over the corpus.
        batch_size: Sentences a step; the similarity objective compares all pairs of a batch.
        learning_rate: Peak of the schedule; high, since most weights start from the teacher's.
        schedule: Shape of the learning rate after its warm-up.
        warmup_ratio: Share of the steps in which the learning rate rises.
        weight_decay: AdamW's weight decay.
        max_grad_norm: Longest gradient; longer ones are cut.
        checkpoint_steps: Steps between checkpoints, and between looks at the development set where there is one.
        followed_layers: Which of the teacher's layers hidden_states and patient compare the student's with: its `last`
            ones, or `spread` evenly over its depth.
        patience: Looks at the development set without a better score before the stage ends; `0` for all of its epochs.
        temperature: What cosines are divided by in the contrastive objectives.
        bank_size: Teacher vectors of earlier batches that are negatives in contrastive distillation; `0` for none.
        hard_share: Share of the text's own loss in masked language modelling; the rest is the teacher's.
        logit_temperature: What logits are divided by in the teacher's part.
        margin: How much farther than the relevant text an irrelevant one is to lie, for the objective triplet.
        highest_score: The score of scored pairs that mean the same, for the objective gold_similarity: theirs is a
            cosine of 1, that of pairs scored 0 a cosine of 0.
        learned_matrix: Whether a matrix that is learned in this stage, and left behind, maps the student's vectors to
            the teacher's dimensions (DistilCSE, equation 3), for a student that is narrower and has no head.
    """

    objectives: Mapping[str, float] = field(default_factory=lambda: {"cosine": 1.0})
    epochs: float = 1.0
    batch_size: int = 256
    learning_rate: float = 3e-4
    schedule: Literal["cosine", "linear", "constant_with_warmup"] = "cosine"
    warmup_ratio: float = 0.05
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    checkpoint_steps: int = 500
    followed_layers: Literal["last", "spread"] = "last"
    patience: int = 0
    temperature: float = 0.05
    bank_size: int = 0
    hard_share: float = 0.5
    logit_temperature: float = 1.0
    margin: float = 5.0
    highest_score: float = 5.0
    learned_matrix: bool = False

    def __post_init__(self) -> None:
        """Refuse impossible sizes and objectives that do not exist."""
        require(self.epochs > 0, "stages.epochs", self.epochs, "more than 0")
        require(self.batch_size >= 2, "stages.batch_size", self.batch_size, "2 or more")
        require(self.learning_rate > 0, "stages.learning_rate", self.learning_rate, "more than 0")
        require(0 <= self.warmup_ratio < 1, "stages.warmup_ratio", self.warmup_ratio, "at least 0 and below 1")
        require(self.weight_decay >= 0, "stages.weight_decay", self.weight_decay, "0 or more")
        require(self.max_grad_norm > 0, "stages.max_grad_norm", self.max_grad_norm, "more than 0")
        require(self.checkpoint_steps >= 1, "stages.checkpoint_steps", self.checkpoint_steps, "1 or more")
        for name in ("patience", "bank_size"):
            require(getattr(self, name) >= 0, f"stages.{name}", getattr(self, name), "0 or more")
        require(0 <= self.hard_share <= 1, "stages.hard_share", self.hard_share, "0 to 1")
        require(self.logit_temperature > 0, "stages.logit_temperature", self.logit_temperature, "more than 0")
        for name in ("temperature", "margin", "highest_score"):
            require(getattr(self, name) > 0, f"stages.{name}", getattr(self, name), "more than 0")
        require(bool(self.objectives), "stages.objectives", dict(self.objectives), "at least one objective")
        for name, weight in self.objectives.items():
            known(name, OBJECTIVE_NAMES, "stages.objectives")
            require(weight > 0, f"stages.objectives.{name}", weight, "a weight above 0")
        for name, reason in _ALONE.items():
            require(
                name not in self.objectives or len(self.objectives) == 1,
                "stages.objectives",
                sorted(self.objectives),
                f"{name} in a stage of its own, since {reason}",
            )

    @property
    def contrastive(self) -> bool:
        """Whether the stage compares a pair with all others of its batch."""
        return "contrastive" in self.objectives

    @property
    def reads_pairs(self) -> bool:
        """Whether the stage learns from labelled pairs, without a teacher."""
        return self.contrastive or self.reads_triplets

    @property
    def reads_triplets(self) -> bool:
        """Whether its labelled pairs must have hard negatives."""
        return "triplet" in self.objectives

    @property
    def reads_scored(self) -> bool:
        """Whether the stage learns from scored pairs, without a teacher."""
        return "gold_similarity" in self.objectives

    @property
    def masked(self) -> bool:
        """Whether the stage learns which tokens were masked."""
        return "masked_language" in self.objectives

    @property
    def reads_vectors(self) -> bool:
        """Whether the stage learns from the teacher's vectors of sentences."""
        return not (self.reads_pairs or self.reads_scored or self.masked)
