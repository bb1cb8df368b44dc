"""The weights of students, to compare two of them."""

from pathlib import Path

import torch

from edgeembed.models import load_model


def weights(folder: Path) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = load_model(str(folder)).state_dict()
    return state


def assert_equal(ours: Path, theirs: Path) -> None:
    left, right = weights(ours), weights(theirs)
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)
