"""Triplet margin loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from edgeembed.losses.base import LOSSES, Loss, LossContext, Reads

if TYPE_CHECKING:
    from torch import nn


@LOSSES.register("triplet")
class Triplet(Loss):
    """Margin by which a text is nearer to a relevant text than to an irrelevant one.

    It is max(|a - p| - |a - n| + margin, 0) of anchor, positive and hard negative.

    Attributes:
        margin: How much farther the hard negative has to be from the anchor than the positive, as a Euclidean
            distance.
    """

    source: ClassVar[str] = "Xayn (Chaulwar et al. 2022), equation 1"
    reads: ClassVar[Reads] = "labeled pairs"
    needs_hard_negatives: ClassVar[bool] = True

    margin: float = Field(default=5.0, gt=0)

    def build(self, context: LossContext) -> nn.Module:
        """Return the loss of sentence-transformers."""
        from sentence_transformers.sentence_transformer.losses import TripletLoss

        loss: nn.Module = TripletLoss(context.student, triplet_margin=self.margin)
        return loss
