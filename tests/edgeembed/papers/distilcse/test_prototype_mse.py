"""The prototype scores of Meta-KD, compared with NumPy."""

from pathlib import Path

import numpy as np
import pytest
import torch
from edgeembed_runtime.errors import InputError

from edgeembed.distillation import distill
from edgeembed.losses.base import LossInputs
from edgeembed.papers.distilcse.losses.prototype_mse import PrototypeMSELoss, prototype_scores


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


def test_a_corpus_of_one_file_raises_before_the_teacher_encodes_it(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    changes = {"corpus.heldout": 0, "vocabulary.kind": "teacher", "student.token_dim": 8, "head.dim": 8}
    losses = {"student.max_seq_length": 32, "stages.losses.prototype_mse": 1.0}
    with pytest.raises(InputError, match="prototype_mse compares domains, and the corpus has 1"):
        distill("compact", sentences, tmp_path / "s", teacher=teacher_folder, overrides={**changes, **losses})
    assert not (tmp_path / "s.cache").exists()
