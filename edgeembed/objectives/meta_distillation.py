"""Lie where the teacher lies, above all with sentences that it knows well."""

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_runtime.errors import InputError
from torch import nn

from edgeembed.objectives.base import ObjectiveInputs

# Meta-KD leaves the weight of a sentence's own domain open (section 3.2); ours gives it and the others equal shares.
_OWN_SHARE = 0.5
_CHUNK = 65_536  # rows in float64 at a time: 200 MB for vectors of 384 dimensions


class MetaDistillation(nn.Module):
    """Mean squared error, each sentence weighted by how typical it is of its domain and of the others.

    Meta-KD (Pan et al. 2021), as far as it can be said without labels: the weight is (1 + t) / 2 of a sentence's
    prototype score t; its divisor, which the meta-teacher's error on a label decides, is the same for all.

    Args:
        scores: Prototype scores, float32 (sentences,), by row of the teacher cache.
    """

    scores: torch.Tensor

    def __init__(self, scores: npt.NDArray[np.float32]) -> None:
        super().__init__()
        self.register_buffer("scores", torch.from_numpy(scores), persistent=False)

    def forward(self, inputs: ObjectiveInputs) -> torch.Tensor:
        """Give the error, averaged over the batch and the dimensions."""
        weights = (1 + self.scores[inputs.rows]) / 2
        errors = (inputs.student_raw - inputs.target_raw).square().mean(dim=1)
        return (weights * errors).mean()


def prototype_scores(
    vectors: npt.NDArray[np.floating], domains: npt.NDArray[np.int64], *, own_share: float = _OWN_SHARE
) -> npt.NDArray[np.float32]:
    """Give how typical sentences are of their domain, and of the others (Meta-KD, section 3.2).

    A domain's prototype is the mean of the teacher's vectors of its sentences. The score is the cosine with the own
    domain's prototype and the mean cosine with the others', weighted.

    Args:
        vectors: The teacher's vectors (sentences, dim) of any float type, memory-mapped or not.
        domains: Each sentence's domain, any numbers (sentences,).
        own_share: Weight of the own domain, 0 to 1.

    Returns:
        float32 (sentences,), -1 to 1.

    Raises:
        InputError: If there are fewer than two domains.
    """
    names, domains = np.unique(domains, return_inverse=True)
    count = len(names)
    if count < 2:
        raise InputError(
            f"the objective meta weighs domains against each other, and the corpus has {count}; expected two files or "
            "more, one a domain"
        )
    prototypes = np.zeros((count, vectors.shape[1]))
    for first in range(0, len(vectors), _CHUNK):
        rows = slice(first, first + _CHUNK)
        np.add.at(prototypes, domains[rows], _unit(vectors[rows]))
    prototypes = _unit(prototypes)
    scores = np.empty(len(vectors), dtype=np.float32)
    for first in range(0, len(vectors), _CHUNK):
        rows = slice(first, first + _CHUNK)
        cosines = _unit(vectors[rows]) @ prototypes.T
        own = cosines[np.arange(len(cosines)), domains[rows]]
        others = (cosines.sum(axis=1) - own) / (count - 1)
        scores[rows] = own_share * own + (1 - own_share) * others
    return scores


def _unit(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    wide = np.asarray(vectors, dtype=np.float64)
    unit: npt.NDArray[np.float64] = wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)
    return unit
