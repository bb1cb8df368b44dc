"""Regression of cosines to human similarity scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError
from pydantic import Field

from edgeembed.losses.base import LOSSES, Loss, LossContext, Reads

if TYPE_CHECKING:
    from torch import nn

    from edgeembed.corpus.pairs import SentencePairs


@LOSSES.register("gold_similarity")
class GoldSimilarity(Loss):
    """Mean squared error between the cosine of two sentences and the score that people gave them.

    Attributes:
        max_score: Score of pairs that mean the same. It becomes a cosine of 1, and a score of 0 a cosine of 0.
    """

    source: ClassVar[str] = "Xayn (Chaulwar et al. 2022), figure 2"
    reads: ClassVar[Reads] = "scored pairs"

    max_score: float = Field(default=5.0, gt=0)

    def build(self, context: LossContext) -> nn.Module:
        """Return the loss of sentence-transformers."""
        from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

        loss: nn.Module = CosineSimilarityLoss(context.student)
        return loss

    def scores_as_labels(self, pairs: SentencePairs) -> npt.NDArray[np.float32]:
        """Return the scores as cosines, float32 (pairs,)."""
        low, high = float(pairs.scores.min()), float(pairs.scores.max())
        if low < 0 or high > self.max_score:
            raise InputError(
                f"{pairs.name} has scores from {low:g} to {high:g}; expected 0 to {self.max_score:g}: set "
                "stages.losses.gold_similarity.max_score to the score of pairs that mean the same"
            )
        return (pairs.scores / self.max_score).astype(np.float32)
