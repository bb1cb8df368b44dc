"""Cross-entropy with the distribution of a teacher."""

import torch
from torch import nn


def soft_cross_entropy(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the cross-entropy between the distributions of teacher and student, row by row.

    H(softmax(teacher / T), softmax(student / T)), after Hinton et al. 2015; "Cross-architecture distillation
    using bidirectional CMOW embeddings", section 2.2.

    Args:
        student: Logits, float (rows, classes).
        teacher: Logits, float (rows, classes).
        temperature: Divisor T of the logits.

    Returns:
        float (rows,).
    """
    targets = nn.functional.softmax(teacher / temperature, dim=-1)
    return -(targets * nn.functional.log_softmax(student / temperature, dim=-1)).sum(dim=-1)
