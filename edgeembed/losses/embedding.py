"""Losses that compare the embeddings of student and teacher, of sentences and of tokens."""

import torch
from torch import nn

from edgeembed.losses.base import LossInputs
from edgeembed.processes import mean_over_processes, union_over_processes


def cosine(inputs: LossInputs) -> torch.Tensor:
    """Return the mean of 1 - cos(student, target) over the batch.

    For normalized embeddings this is half the squared distance, HPD's equation 2 (Zhao et al. 2022) on the sphere on
    which rankings are made.
    """
    return 1 - (inputs.student * inputs.target).sum(dim=1).mean()


def mse(inputs: LossInputs) -> torch.Tensor:
    """Return the mean squared error between the embeddings of student and target, over batch and dimensions.

    SimTDE's equation 4 (Xie et al. 2023). HPD's equation 2 sums over the dimensions instead: use their number as
    the weight.
    """
    return (inputs.student_raw - inputs.target_raw).square().mean()


def mae(inputs: LossInputs) -> torch.Tensor:
    """Return the mean absolute error between the embeddings of student and target, over batch and dimensions.

    SimTDE's equation 4 (Xie et al. 2023) with the absolute error. The paper's own ablation takes that of cosines
    (`similarity_mae`).
    """
    return (inputs.student_raw - inputs.target_raw).abs().mean()


def kl(inputs: LossInputs) -> torch.Tensor:
    """Return the mean of KL(softmax(target) || softmax(student)) over the batch.

    The softmax turns the dimensions of an embedding into a distribution. An ablation of SimTDE's equation 4 (Xie et al.
    2023, section 4.3); the paper does not say what the divergence is taken of.
    """
    student = nn.functional.log_softmax(inputs.student_raw, dim=1)
    target = nn.functional.log_softmax(inputs.target_raw, dim=1)
    return nn.functional.kl_div(student, target, reduction="batchmean", log_target=True)


def similarity(inputs: LossInputs) -> torch.Tensor:
    """Return the mean squared difference between the pairwise cosines of student and teacher, over the batch.

    The teacher's cosines are those of its embeddings before projection, so that the student also learns about the
    dimensions that the head leaves out. Similarity-preserving distillation (Tung and Mori 2019, equation 4) on cosines;
    an ablation of SimTDE.
    """
    return _cosine_differences(inputs).square().mean()


def similarity_mae(inputs: LossInputs) -> torch.Tensor:
    """Return the mean absolute difference between the pairwise cosines of student and teacher, over the batch.

    Another ablation of SimTDE (Xie et al. 2023, section 4.3), which does not say which pairs it compares.
    """
    return _cosine_differences(inputs).abs().mean()


def _cosine_differences(inputs: LossInputs) -> torch.Tensor:
    return inputs.student @ inputs.student.T - inputs.teacher @ inputs.teacher.T


class TokenEmbedding:
    """Mean squared error between the student's projected token embeddings and the teacher's (SimTDE, equation 3).

    Args:
        embedding: The student's input embedding.
        targets: The teacher's embedding of each of the student's tokens, float32 (vocabulary, hidden_size).
    """

    def __init__(self, embedding: nn.Module, targets: torch.Tensor) -> None:
        self.embedding = embedding
        self.targets = targets

    def __call__(self, inputs: LossInputs) -> torch.Tensor:
        """Return the error over the distinct tokens of the batch and their dimensions, a float32 scalar."""
        token_ids = union_over_processes(inputs.token_ids[inputs.attention_mask.bool()], len(self.targets))
        # Once: the table of a large vocabulary is tens of MB, too much to copy at every step.
        self.targets = self.targets.to(token_ids.device)
        targets = self.targets[token_ids]
        embedded: torch.Tensor = self.embedding(token_ids)
        # Each process has the same tokens, and so an equal share of the gradient.
        return mean_over_processes((embedded.float() - targets).square().mean(), 1)
