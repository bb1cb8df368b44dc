"""Contrastive learning from labeled pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from edgeembed.losses.base import LOSSES, Loss, LossContext, Reads

if TYPE_CHECKING:
    from torch import nn


@LOSSES.register("contrastive")
class Contrastive(Loss):
    """InfoNCE of labeled pairs: a pair is more similar than all other pairs of its batch, and than its hard negative.

    Attributes:
        temperature: Divisor of the cosines.
    """

    source: ClassVar[str] = "SimCSE (Gao et al. 2021), section 4; HPD (Zhao et al. 2022), equation 1"
    reads: ClassVar[Reads] = "labeled pairs"
    compares_pairs: ClassVar[bool] = True

    temperature: float = Field(default=0.05, gt=0)

    def build(self, context: LossContext) -> nn.Module:
        """Return the loss of sentence-transformers."""
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

        loss: nn.Module = MultipleNegativesRankingLoss(context.student, scale=1 / self.temperature)
        return loss
