"""The prototype scores of Meta-KD, compared with NumPy."""

import numpy as np
import pytest
import torch
from edgeembed_runtime.errors import InputError

from edgeembed.losses.base import LossInputs
from edgeembed.losses.prototype_mse import PrototypeMSELoss, prototype_scores


def test_a_score_is_the_cosine_with_the_own_prototype_and_the_mean_one_with_the_others() -> None:
    draw = np.random.default_rng(3)
    vectors, domains = draw.normal(size=(12, 4)), np.array([0, 5, 9] * 4)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    prototypes = {}
    for domain in (0, 5, 9):
        mean = unit[domains == domain].mean(axis=0)
        prototypes[domain] = mean / np.linalg.norm(mean)
    expected = [
        0.7 * vector @ prototypes[domain]
        + 0.3 * np.mean([vector @ prototype for other, prototype in prototypes.items() if other != domain])
        for vector, domain in zip(unit, domains, strict=True)
    ]
    np.testing.assert_allclose(prototype_scores(vectors, domains, own_weight=0.7), expected, atol=1e-6)


def test_typical_sentences_have_larger_weights() -> None:
    draw = np.random.default_rng(4)
    student, target, scores = draw.normal(size=(3, 4)), draw.normal(size=(3, 4)), np.array([9, 0.5, -0.2, 0.9])
    rows, nothing = torch.tensor([1, 3, 2]), torch.zeros(3, 1, dtype=torch.long)
    ours, theirs = (torch.tensor(each, dtype=torch.float32) for each in (student, target))
    inputs = LossInputs(ours, theirs, theirs, rows, nothing, nothing, student_raw=ours, target_raw=theirs)
    weights = (1 + scores[[1, 3, 2]]) / 2
    expected = np.mean(weights * ((student - target) ** 2).mean(axis=1))
    assert PrototypeMSELoss(scores.astype(np.float32))(inputs).item() == pytest.approx(expected, rel=1e-5)


def test_one_domain_raises() -> None:
    with pytest.raises(InputError, match="the corpus has 1; expected two files or more"):
        prototype_scores(np.ones((3, 2)), np.zeros(3, dtype=np.int64))
