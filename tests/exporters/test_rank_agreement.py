import numpy as np
import pytest
from edgeembed_exporters.rank_agreement import rank_agreement


def test_a_model_agrees_with_itself_whatever_the_scale_of_its_embeddings() -> None:
    vectors = np.random.default_rng(0).normal(size=(40, 6))
    assert rank_agreement(vectors, 7 * vectors) == pytest.approx((1, 1))


def test_the_overlap_equals_the_hand_computed_share() -> None:
    """Of twelve texts on an arc, the ten nearest of each are all others but the farthest: the last one, or the first.

    The other model has the two halves of the arc in turned order: the farthest of a text is one in the middle.
    """
    first = np.radians(np.arange(12.0))
    second = np.radians([5.0, 4, 3, 2, 1, 0, 11, 10, 9, 8, 7, 6])
    arcs = [np.stack([np.cos(angles), np.sin(angles)], axis=1) for angles in (first, second)]
    assert rank_agreement(*arcs).top_10_overlap == pytest.approx(0.9)


def test_unrelated_models_agree_no_more_than_chance() -> None:
    random = np.random.default_rng(1)
    agreement = rank_agreement(random.normal(size=(201, 16)), random.normal(size=(201, 8)))
    assert agreement.top_10_overlap == pytest.approx(0.05, abs=0.02)
    assert agreement.spearman == pytest.approx(0, abs=0.05)


def test_embeddings_that_are_all_equal_agree_with_nothing() -> None:
    assert rank_agreement(np.eye(20), np.ones((20, 3))).spearman is None
    assert rank_agreement(np.random.default_rng(0).normal(size=(20, 3)), np.ones((20, 3))).spearman == 0
