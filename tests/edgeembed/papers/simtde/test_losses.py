"""The losses of SimTDE's ablations."""

import numpy as np
import pytest

from edgeembed.papers.simtde.losses.kl import KL
from edgeembed.papers.simtde.losses.mae import MAE
from edgeembed.papers.simtde.losses.similarity_mae import SimilarityMAE

from ...loss_inputs import random_inputs  # noqa: TID252


def test_mae_takes_the_absolute_error() -> None:
    given, student, target = random_inputs()
    assert float(MAE().compute(given)) == pytest.approx(np.mean(np.abs(student - target)), rel=1e-6)


def test_kl_is_the_divergence_of_softmaxed_vectors() -> None:
    given, student, target = random_inputs()
    ours, theirs = (np.exp(each) / np.exp(each).sum(axis=1, keepdims=True) for each in (student, target))
    assert float(KL().compute(given)) == pytest.approx(np.mean((theirs * np.log(theirs / ours)).sum(axis=1)), rel=1e-5)


def test_similarity_mae_is_the_mean_absolute_difference_of_all_pairs() -> None:
    given, student, target = random_inputs()
    expected = np.mean(np.abs(student @ student.T - target @ target.T))
    assert float(SimilarityMAE().compute(given)) == pytest.approx(expected, rel=1e-5)
