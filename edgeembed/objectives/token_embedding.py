"""Keep the token table close to the teacher's."""

import torch
from torch import nn

from edgeembed.objectives.base import ObjectiveInputs


class TokenEmbedding:
    """Mean squared error between the student's projected token embeddings and the wanted ones (SimTDE, equation 3).

    Args:
        embedding: The student's input embedding.
        targets: Wanted token embeddings, float32 (vocabulary, hidden_size).
    """

    def __init__(self, embedding: nn.Module, targets: torch.Tensor) -> None:
        self.embedding = embedding
        self.targets = targets

    def __call__(self, inputs: ObjectiveInputs) -> torch.Tensor:
        """Return the error, averaged over the distinct tokens of the batch and their dimensions, a float32 scalar."""
        token_ids = torch.unique(inputs.token_ids[inputs.attention_mask.bool()])
        # Once: the table of a large vocabulary is tens of MB, too much to copy at every step.
        self.targets = self.targets.to(token_ids.device)
        targets = self.targets[token_ids]
        embedded: torch.Tensor = self.embedding(token_ids)
        return (embedded.float() - targets).square().mean()
