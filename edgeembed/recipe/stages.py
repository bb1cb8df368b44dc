"""Settings of the stages of training."""

from collections.abc import Mapping
from typing import Any, Literal

from edgeembed_runtime.errors import InputError
from pydantic import Field, SerializeAsAny, model_validator

from edgeembed.losses.base import LOSSES, Loss, Reads
from edgeembed.validation import Settings, check, validate


class StageSettings(Settings):
    """One run of the trainer.

    Attributes:
        losses: The losses whose weighted sum is minimized, by name, in the order in which they are added up.
        epochs: Passes over the data.
        batch_size: Sentences, or pairs, of a batch. The loss `similarity` compares all pairs of sentences of a batch.
        learning_rate: Peak learning rate. High by default, since most weights start at the teacher's.
        schedule: Shape of the learning rate after the warm-up.
        warmup_ratio: Share of the steps in which the learning rate rises.
        weight_decay: Weight decay of AdamW; with `0` it is Adam.
        max_grad_norm: Maximum norm of the gradient, which is clipped; `0` for no clipping.
        checkpoint_steps: Steps between checkpoints, and between evaluations on the development set if there is one.
        patience: Epochs without a better score on the development set before the stage ends early, rounded up to
            whole evaluations; `0` for never.
        group_by_length: Whether the sentences of a batch are of similar length, which saves padding. A loss that
            compares the sentences of a batch then sees others of the same length only.
        compile: Whether torch.compile runs the student's transformer. That takes a C++ compiler, and half a minute at
            the start; it pays for texts of a hundred tokens, not for short sentences.
        project_to_teacher: Whether a linear layer, learned in this stage and discarded after it, projects the student's
            embeddings to the teacher's dimension (DistilCSE, equation 3), for a narrower student without a head.
    """

    losses: dict[str, SerializeAsAny[Loss]] = Field(default_factory=lambda: {"cosine": LOSSES["cosine"]()})
    epochs: float = Field(default=1.0, gt=0)
    batch_size: int = Field(default=256, ge=2)
    learning_rate: float = Field(default=3e-4, gt=0)
    schedule: Literal["cosine", "linear", "constant_with_warmup"] = "cosine"
    warmup_ratio: float = Field(default=0.05, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0)
    max_grad_norm: float = Field(default=1.0, ge=0)
    checkpoint_steps: int = Field(default=500, ge=1)
    patience: float = Field(default=0, ge=0)
    group_by_length: bool = True
    compile: bool = False
    project_to_teacher: bool = False

    @model_validator(mode="before")
    @classmethod
    def _builds_losses(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or "losses" not in value:
            return value
        return {**value, "losses": _losses(value["losses"])}

    @model_validator(mode="after")
    def _has_losses_that_fit_together(self) -> "StageSettings":
        names = list(self.losses)
        check(bool(names), "losses", {}, "at least one loss, such as cosine = 1.0")
        for name, loss in self.losses.items():
            alone = loss.reads == "teacher embeddings" or len(names) == 1
            check(alone, "losses", names, f"{name} in a stage of its own, since it reads {loss.reads}")
        check(
            self.uses_teacher_embeddings or not self.project_to_teacher,
            "project_to_teacher",
            True,
            f"false with the loss {names[0]}, which does not read the teacher's embeddings",
        )
        return self

    @classmethod
    def nested_settings(cls) -> dict[str, str]:
        """Return the path of each loss, for suggestions."""
        return {name: f"losses.{name}" for name in LOSSES}

    @property
    def reads(self) -> Reads:
        """What the stage trains on."""
        return next(iter(self.losses.values())).reads

    @property
    def compares_pairs(self) -> bool:
        """Whether a pair is compared with all other pairs of its batch."""
        return any(loss.compares_pairs for loss in self.losses.values())

    @property
    def uses_pairs(self) -> bool:
        """Whether the stage learns from labeled pairs, without a teacher."""
        return self.reads == "labeled pairs"

    @property
    def uses_hard_negatives(self) -> bool:
        """Whether the labeled pairs must have hard negatives."""
        return any(loss.needs_hard_negatives for loss in self.losses.values())

    @property
    def uses_scored_pairs(self) -> bool:
        """Whether the stage learns from scored pairs, without a teacher."""
        return self.reads == "scored pairs"

    @property
    def is_masked_lm(self) -> bool:
        """Whether the stage is masked language modeling."""
        return self.reads == "text with masked tokens"

    @property
    def uses_teacher_embeddings(self) -> bool:
        """Whether the stage learns from the teacher's sentence embeddings."""
        return self.reads == "teacher embeddings"

    @property
    def teaches_space(self) -> bool:
        """Whether the stage draws the student's embeddings to the targets themselves, not only their similarities."""
        return not self.project_to_teacher and any(loss.teaches_space for loss in self.losses.values())


def _losses(given: object) -> dict[str, Loss]:
    """Return losses from plain data by name."""
    if not isinstance(given, Mapping):
        raise InputError(f"losses is {given!r}; expected a table of losses, such as cosine = 1.0")
    losses = {}
    for name, settings in given.items():
        try:
            kind = LOSSES[name]
        except InputError as error:
            raise InputError(f"losses: {error}") from None
        losses[name] = settings if isinstance(settings, kind) else validate(kind, settings, f"losses.{name}")
    return losses
