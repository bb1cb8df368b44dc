from __future__ import annotations

import numpy as np
import pytest
from edgeembed_exporters.quantization.int8_matmul import round_weights
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from .conftest import Floats, largest_pair_sum, normal

_WEIGHTS = arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 3)), elements=st.floats(-8, 8, width=32))


def correlated_moment(channels: int, tokens: int = 300) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(tokens, 4)) @ rng.normal(size=(4, channels)) + 0.3 * rng.normal(size=(tokens, channels))
    return rows.T @ rows


@given(_WEIGHTS, st.sampled_from([15, 255]), st.booleans())
@settings(max_examples=200, deadline=None)
def test_no_pair_of_products_exceeds_int16(weight: Floats, largest: int, by_gptq: bool) -> None:
    rounded, scales = round_weights(weight, largest, correlated_moment(len(weight)) if by_gptq else None)
    assert rounded.dtype == np.int8
    assert np.abs(rounded.astype(int)).max() <= 127
    assert largest_pair_sum(rounded) * largest < 2**15
    assert scales.shape == weight.shape[1:]
    assert (scales > 0).all()


def test_weights_of_a_column_without_large_neighbors_have_8_bits() -> None:
    weight: Floats = (normal(64, 8) / 8).astype(np.float32)
    weight[10] = 2  # far above its neighbor
    rounded, scales = round_weights(weight, 255)
    np.testing.assert_allclose(scales, 2 / 127, rtol=0.2)
    assert np.abs(rounded * scales - weight).max() <= scales.max() * 0.5001


def test_two_large_neighbors_of_one_sign_share_the_range() -> None:
    same, opposite = np.array([[1.0], [1.0]], np.float32), np.array([[1.0], [-1.0]], np.float32)
    assert round_weights(same, 255)[0].ravel().tolist() == [64, 64]
    assert round_weights(opposite, 255)[0].ravel().tolist() == [127, -127]
    assert round_weights(same, 15)[0].ravel().tolist() == [127, 127]


@pytest.mark.parametrize("channels", [64, 63])
def test_gptq_loses_less_than_rounding_to_nearest(channels: int) -> None:
    weight, moment = normal(channels, 16), correlated_moment(channels)

    def loss(rounded: np.ndarray, scales: Floats) -> float:
        difference = rounded * scales.astype(np.float64) - weight
        return float((difference * (moment @ difference)).sum())

    assert loss(*round_weights(weight, 255, moment)) < 0.5 * loss(*round_weights(weight, 255))


def test_channels_without_activations_change_nothing() -> None:
    """Outlier channels are zero in the weights and in the moment, and stay zero."""
    weight, moment = normal(32, 8), correlated_moment(32)
    weight[5] = moment[5] = moment[:, 5] = 0
    assert not round_weights(weight, 255, moment)[0][5].any()
