"""Squared error of sentence embeddings, weighted by how typical a sentence is of its domain."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_runtime.errors import InputError
from torch import nn

from edgeembed.losses.base import LOSSES, Loss, LossContext, LossInputs

# Meta-KD leaves the weight of a sentence's own domain open (section 3.2); here it equals that of all others together.
_OWN_DOMAIN_WEIGHT = 0.5
_CHUNK_ROWS = 65_536  # rows converted to float64 at a time: 200 MB for embeddings of 384 dimensions


@LOSSES.register("prototype_mse")
class PrototypeMSE(Loss):
    """Mean squared error of embeddings, weighted by how typical a sentence is of its own domain and of the others."""

    source: ClassVar[str] = "Meta-KD (Pan et al. 2021), section 3.2"
    teaches_space: ClassVar[bool] = True
    compares_domains: ClassVar[bool] = True

    def build(self, context: LossContext) -> "PrototypeMSELoss":
        """Return the loss with the scores of all sentences."""
        return PrototypeMSELoss(prototype_scores(context.teacher.vectors, context.teacher.domains))


class PrototypeMSELoss(nn.Module):
    """Mean squared error weighted by prototype scores: the part of Meta-KD (Pan et al. 2021) that needs no labels.

    The weight of a sentence is (1 + t) / 2 for its prototype score t. In Meta-KD the divisor depends on the error of a
    meta-teacher on the sentence's label; without labels it is the same for all sentences. Meta-KD also trains that
    meta-teacher on several labeled domains and transfers its intermediate layers; this loss does neither.

    Args:
        scores: Prototype scores, float32 (sentences,), by row of the teacher cache.
    """

    scores: torch.Tensor

    def __init__(self, scores: npt.NDArray[np.float32]) -> None:
        super().__init__()
        self.register_buffer("scores", torch.from_numpy(scores), persistent=False)

    def forward(self, inputs: LossInputs) -> torch.Tensor:
        """Return the error over batch and dimensions, a float32 scalar."""
        weights = (1 + self.scores[inputs.rows]) / 2
        errors = (inputs.student_raw - inputs.target_raw).square().mean(dim=1)
        return (weights * errors).mean()


def prototype_scores(
    vectors: npt.NDArray[np.floating], domains: npt.NDArray[np.int64], *, own_weight: float = _OWN_DOMAIN_WEIGHT
) -> npt.NDArray[np.float32]:
    """Return how typical sentences are of their own domain and of the others (Meta-KD, section 3.2).

    The prototype of a domain is the mean of the teacher's embeddings of its sentences. The score of a sentence is the
    weighted mean of its cosine with the prototype of its own domain and its mean cosine with the others.

    Args:
        vectors: The teacher's embeddings (sentences, dim) of any float type, memory-mapped or not.
        domains: Domain of each sentence, any numbers (sentences,).
        own_weight: Weight of the own domain, 0 to 1.

    Returns:
        float32 (sentences,), -1 to 1.

    Raises:
        InputError: If there are fewer than two domains.
    """
    names, domains = np.unique(domains, return_inverse=True)
    count = len(names)
    if count < 2:
        raise InputError(
            f"the loss prototype_mse compares domains, and the corpus has {count}; expected two files or more, one a "
            "domain"
        )
    prototypes = np.zeros((count, vectors.shape[1]))
    for first in range(0, len(vectors), _CHUNK_ROWS):
        rows = slice(first, first + _CHUNK_ROWS)
        np.add.at(prototypes, domains[rows], _normalized(vectors[rows]))
    prototypes = _normalized(prototypes)
    scores = np.empty(len(vectors), dtype=np.float32)
    for first in range(0, len(vectors), _CHUNK_ROWS):
        rows = slice(first, first + _CHUNK_ROWS)
        cosines = _normalized(vectors[rows]) @ prototypes.T
        own = cosines[np.arange(len(cosines)), domains[rows]]
        others = (cosines.sum(axis=1) - own) / (count - 1)
        scores[rows] = own_weight * own + (1 - own_weight) * others
    return scores


def _normalized(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    wide = np.asarray(vectors, dtype=np.float64)
    unit: npt.NDArray[np.float64] = wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)
    return unit
