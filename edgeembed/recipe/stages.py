"""Settings of the stages of training and of their losses."""

from typing import Any, ClassVar, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from edgeembed.recipe.validation import Settings, check

# Losses that are smallest where student and target have the same embedding, or the same direction.
_SPACE_LOSSES = frozenset({"cosine", "mse", "mae", "prototype_mse", "contrastive_distillation"})


class LossSettings(Settings):
    """Settings of a loss that has none but its weight.

    In TOML, `cosine = 0.5` is short for `cosine = { weight = 0.5 }`.

    Attributes:
        weight: Factor of the loss in the weighted sum that a stage minimizes.
    """

    expected: ClassVar[str] = "a weight above 0, or a table of settings"

    weight: float = Field(default=1.0, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _number_is_weight(cls, value: Any) -> Any:
        return {"weight": value} if isinstance(value, int | float) and not isinstance(value, bool) else value

    @model_serializer(mode="wrap")
    def _weight_as_number(self, serialize: SerializerFunctionWrapHandler) -> Any:
        return self.weight if type(self) is LossSettings else serialize(self)


class LayerLossSettings(LossSettings):
    """Settings of a loss between the layers of student and teacher.

    Attributes:
        teacher_layers: Which of the teacher's layers the student's layers are compared with: its `last` ones, or
            layers `spread` evenly over its depth, the last one among them (Sun et al. 2019: PKD-Last and PKD-Skip).
    """

    teacher_layers: Literal["last", "spread"] = "last"


class ContrastiveDistillationSettings(LossSettings):
    """Settings of contrastive distillation (DistilCSE, equations 4 to 6).

    Attributes:
        temperature: Divisor of the cosines.
        bank_size: Number of teacher embeddings of earlier batches that serve as negatives; `0` for none.
    """

    temperature: float = Field(default=0.05, gt=0)
    bank_size: int = Field(default=0, ge=0)


class SingleLossSettings(LossSettings):
    """Settings of a loss that is the only one of its stage, so that its weight is always 1.

    Attributes:
        reads: What the loss reads instead of the corpus and the teacher's embeddings.
    """

    reads: ClassVar[str]

    @model_validator(mode="after")
    def _has_no_weight(self) -> "SingleLossSettings":
        check(self.weight == 1, "weight", self.weight, "1, since the loss is the only one of its stage")
        return self


class ContrastiveSettings(SingleLossSettings):
    """Settings of contrastive learning from labeled pairs (SimCSE).

    Attributes:
        temperature: Divisor of the cosines.
    """

    reads: ClassVar[str] = "labeled pairs"

    temperature: float = Field(default=0.05, gt=0)


class TripletSettings(SingleLossSettings):
    """Settings of the triplet margin loss.

    Attributes:
        margin: How much farther the hard negative has to be from the anchor than the positive, as a Euclidean
            distance.
    """

    reads: ClassVar[str] = "labeled pairs"

    margin: float = Field(default=5.0, gt=0)


class GoldSimilaritySettings(SingleLossSettings):
    """Settings of the regression of cosines to human similarity scores.

    Attributes:
        max_score: Score of pairs that mean the same. It becomes a cosine of 1, and a score of 0 a cosine of 0.
    """

    reads: ClassVar[str] = "scored pairs"

    max_score: float = Field(default=5.0, gt=0)


class MaskedLMSettings(SingleLossSettings):
    """Settings of masked language modeling with a teacher.

    Attributes:
        hard_label_weight: Weight of the cross-entropy with the masked tokens, 0 to 1. The cross-entropy with the
            teacher's distribution has the rest.
        temperature: Divisor of the logits in the teacher's part.
    """

    reads: ClassVar[str] = "text with masked tokens"

    hard_label_weight: float = Field(default=0.5, ge=0, le=1)
    temperature: float = Field(default=1.0, gt=0)


class Losses(Settings):
    """The losses of a stage by name, in the order in which they are added up. This is the one list of their names.

    Attributes:
        cosine: One minus the cosine of student and target.
        mse: Mean squared error between the embeddings of student and teacher.
        mae: Mean absolute error between them.
        kl: Kullback-Leibler divergence between their softmaxed embeddings.
        prototype_mse: Mean squared error, weighted by how typical a sentence is of its own domain and of the others.
        similarity: Mean squared difference of all pairwise cosines of a batch.
        similarity_mae: Mean absolute difference of the same.
        contrastive_distillation: InfoNCE between the embeddings of student and teacher.
        token_embedding: Mean squared error between token embeddings.
        hidden_states: Mean squared error between hidden states.
        patient: Squared distance of the normalized hidden states that represent the sentence.
        contrastive: InfoNCE between labeled pairs, without a teacher.
        triplet: Triplet margin loss on labeled pairs with hard negatives, without a teacher.
        gold_similarity: Mean squared error between cosines and human scores, without a teacher.
        masked_lm: Masked language modeling.
    """

    cosine: LossSettings | None = None
    mse: LossSettings | None = None
    mae: LossSettings | None = None
    kl: LossSettings | None = None
    prototype_mse: LossSettings | None = None
    similarity: LossSettings | None = None
    similarity_mae: LossSettings | None = None
    contrastive_distillation: ContrastiveDistillationSettings | None = None
    token_embedding: LossSettings | None = None
    hidden_states: LayerLossSettings | None = None
    patient: LayerLossSettings | None = None
    contrastive: ContrastiveSettings | None = None
    triplet: TripletSettings | None = None
    gold_similarity: GoldSimilaritySettings | None = None
    masked_lm: MaskedLMSettings | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the losses."""
        return tuple(name for name, _ in self.items())

    def items(self) -> list[tuple[str, LossSettings]]:
        """Return the name and the settings of each loss."""
        return [(name, settings) for name, settings in self if settings is not None]


class StageSettings(Settings):
    """One run of the trainer.

    Attributes:
        losses: The losses whose weighted sum is minimized.
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

    losses: Losses = Losses(cosine=LossSettings())
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

    @model_validator(mode="after")
    def _has_losses_that_fit_together(self) -> "StageSettings":
        names = self.losses.names
        check(bool(names), "losses", {}, "at least one loss, such as cosine = 1.0")
        for name, settings in self.losses.items():
            if isinstance(settings, SingleLossSettings):
                expected = f"{name} in a stage of its own, since it reads {settings.reads}"
                check(len(names) == 1, "losses", list(names), expected)
        check(
            self.uses_teacher_embeddings or not self.project_to_teacher,
            "project_to_teacher",
            True,
            f"false with the loss {names[0]}, which does not read the teacher's embeddings",
        )
        return self

    @property
    def is_contrastive(self) -> bool:
        """Whether a pair is compared with all other pairs of its batch."""
        return self.losses.contrastive is not None

    @property
    def uses_pairs(self) -> bool:
        """Whether the stage learns from labeled pairs, without a teacher."""
        return self.is_contrastive or self.uses_hard_negatives

    @property
    def uses_hard_negatives(self) -> bool:
        """Whether the labeled pairs must have hard negatives."""
        return self.losses.triplet is not None

    @property
    def uses_scored_pairs(self) -> bool:
        """Whether the stage learns from scored pairs, without a teacher."""
        return self.losses.gold_similarity is not None

    @property
    def is_masked_lm(self) -> bool:
        """Whether the stage is masked language modeling."""
        return self.losses.masked_lm is not None

    @property
    def uses_teacher_embeddings(self) -> bool:
        """Whether the stage learns from the teacher's sentence embeddings."""
        return not (self.uses_pairs or self.uses_scored_pairs or self.is_masked_lm)

    @property
    def teaches_space(self) -> bool:
        """Whether the stage draws the student's embeddings to the targets themselves, not only their similarities."""
        return not self.project_to_teacher and bool(_SPACE_LOSSES.intersection(self.losses.names))
