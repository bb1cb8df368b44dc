"""Patient knowledge distillation."""

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Pooling

from edgeembed.papers.distilcse.losses.patient import PatientLoss

from ...loss_inputs import LayeredTeacher, layered, matrices_of  # noqa: TID252


@pytest.mark.parametrize("width", [3, 2], ids=["as wide", "through learnable matrices"])
@pytest.mark.parametrize("modes", [("cls", "cls"), ("mean", "mean"), ("cls", "mean")])
def test_patient_compares_the_directions_of_pooled_states_and_leaves_out_the_last_layer(
    width: int, modes: tuple[str, str]
) -> None:
    """PKD's equation 7 has first tokens; a mean-pooled model represents the sentence by the mean."""
    given, ours, theirs = layered(width)
    poolings = Pooling(width, modes[0]), Pooling(3, modes[1])
    loss = PatientLoss(LayeredTeacher(tuple(map(torch.tensor, theirs))), (2,), (width, 3), poolings)
    mask = given.attention_mask.numpy()[:, :, None]
    mine, other = (
        states[:, 0] if mode == "cls" else (states * mask).sum(axis=1) / mask.sum(axis=1)
        for states, mode in zip((ours[1], theirs[2]), modes, strict=True)
    )
    pair = mine @ matrices_of(loss, width)[0].T, other
    units = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in pair]
    assert loss(given).item() == pytest.approx(np.mean(((units[0] - units[1]) ** 2).sum(axis=1)), rel=1e-5)
