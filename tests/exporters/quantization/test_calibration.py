from __future__ import annotations

import numpy as np
from edgeembed_exporters.quantization.calibration import ActivationStatistics, measure_activations, with_short_texts

from ..graphs import evaluate  # noqa: TID252  # tests are not a package
from .conftest import linear_model, normal


def test_short_texts_are_first_and_last_words() -> None:
    assert with_short_texts(["a b c d e", "a"]) == [
        *["a b c d e", "a"],
        *["e", "a b", "d e", "a b c d", "b c d e"],
    ]


def test_both_texts_of_a_pair_are_shortened() -> None:
    found = with_short_texts([("a b c", "x y z")])
    assert found == [("a b c", "x y z"), ("a", "x"), ("c", "z"), ("a b", "x y"), ("b c", "y z")]


def test_statistics_are_those_of_all_tokens() -> None:
    model = linear_model(normal(50, 8), normal(8, 4, seed=1))
    texts = [[number % 50, (7 * number) % 50] for number in range(150)]
    found = measure_activations(model, ["x"], texts)["x"]
    rows = np.concatenate([evaluate(model, [ids], "x")[0] for ids in texts])
    assert found.tokens == 300
    np.testing.assert_array_equal(found.minimum, rows.min(axis=0))
    np.testing.assert_array_equal(found.maximum, rows.max(axis=0))
    np.testing.assert_array_equal(found.magnitude, np.abs(rows).max(axis=0))
    np.testing.assert_allclose(found.moment, rows.T @ rows, rtol=1e-4, atol=1e-4)


def test_the_moment_after_centering_and_scaling() -> None:
    rows, center, factors = normal(40, 6) + 3, normal(6, seed=1), np.abs(normal(6, seed=2)) + 1
    changed = (rows - center) / factors
    found = ActivationStatistics.of(rows).moment_after(center, factors)
    np.testing.assert_allclose(found, changed.T @ changed, rtol=1e-4, atol=1e-3)
