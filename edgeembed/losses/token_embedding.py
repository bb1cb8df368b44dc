"""Squared error of token embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from edgeembed.losses.base import LOSSES, Loss, LossContext, LossInputs

if TYPE_CHECKING:
    import torch
    from torch import nn


@LOSSES.register("token_embedding")
class TokenEmbedding(Loss):
    """Mean squared error between the projected token embeddings of the student and the teacher's."""

    source: ClassVar[str] = "SimTDE (Xie et al. 2023), equation 3"
    compares_token_tables: ClassVar[bool] = True

    def build(self, context: LossContext) -> TokenEmbeddingLoss:
        """Return the loss of the student's embedding table."""
        return TokenEmbeddingLoss(context.student[0].auto_model.get_input_embeddings(), context.teacher.token_targets)


class TokenEmbeddingLoss:
    """The loss of a student's embedding table.

    Args:
        embedding: The student's input embedding.
        targets: The teacher's embedding of each of the student's tokens, float32 (vocabulary, hidden_size).
    """

    def __init__(self, embedding: nn.Module, targets: torch.Tensor) -> None:
        self.embedding = embedding
        self.targets = targets

    def __call__(self, inputs: LossInputs) -> torch.Tensor:
        """Return the error over the distinct tokens of the batch and their dimensions, a float32 scalar."""
        import torch

        from edgeembed.processes import gather_rows, mean_over_processes

        uses = torch.bincount(inputs.token_ids[inputs.attention_mask.bool()], minlength=len(self.targets))
        token_ids = gather_rows(uses[None]).sum(dim=0).nonzero()[:, 0]
        # Once: the table of a large vocabulary is tens of MB, too much to copy at every step.
        self.targets = self.targets.to(token_ids.device)
        targets = self.targets[token_ids]
        embedded: torch.Tensor = self.embedding(token_ids)
        # Each process has the same tokens, and so an equal share of the gradient.
        return mean_over_processes((embedded.float() - targets).square().mean(), 1)
