from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from edgeembed_exporters.precision.blocks import round_rows
from edgeembed_exporters.precision.int4 import quantise_products, round_weights

from ..graphs import constants_of, evaluate, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import IDS, TEXTS, Floats, error, normal, product_of

Moment = npt.NDArray[np.float64]


def bits_of(model: onnx.ModelProto) -> list[int]:
    nodes = [node for node in model.graph.node if node.op_type == "MatMulNBits"]
    return [attribute.i for node in nodes for attribute in node.attribute if attribute.name == "bits"]


def correlated(rows: int, channels: int) -> Floats:
    """Activations of few directions, as a trained encoder's are."""
    given: Floats = normal(rows, 6) @ normal(6, channels, seed=1) + np.float32(0.1) * normal(rows, channels, seed=2)
    return given


def loss(rounded: Floats, weight: Floats, moment: Moment) -> float:
    change = (rounded - weight).astype(np.float64)
    return float((change * (moment @ change)).sum())


@pytest.mark.parametrize("block", [16, 32])
@pytest.mark.parametrize("channels", [32, 40])
def test_products_of_correlated_activations_lose_less_than_by_plain_rounding(channels: int, block: int) -> None:
    given, weight = correlated(300, channels), normal(channels, 24, seed=3)
    moment = (given.T @ given).astype(np.float64)
    plain = round_rows(np.ascontiguousarray(weight.T), block, 4).values()[:, :channels].T
    found = round_weights(weight, moment, block, 4)
    assert loss(found.values()[:, :channels].T, weight, moment) < 0.5 * loss(plain, weight, moment)


def test_activations_that_have_nothing_in_common_are_rounded_plainly() -> None:
    weight = normal(32, 24)
    found = round_weights(weight, np.eye(32), 16, 4)
    np.testing.assert_array_equal(found.levels, round_rows(np.ascontiguousarray(weight.T), 16, 4).levels)


def test_weights_on_the_grid_are_exact() -> None:
    given = correlated(200, 32)
    weight: Floats = (np.random.default_rng(0).integers(-8, 8, (32, 24)) / 4).astype(np.float32)
    weight[::16] = -2  # the outermost level, in every block
    found = round_weights(weight, (given.T @ given).astype(np.float64), 16, 4)
    np.testing.assert_array_equal(found.values().T, weight)


def test_the_given_weights_are_left_as_they_were() -> None:
    weight = normal(32, 24)
    before = weight.copy()
    round_weights(weight, np.eye(32), 16, 4)
    np.testing.assert_array_equal(weight, before)


@pytest.mark.parametrize("bias", [None, normal(23, seed=2)], ids=["no bias", "bias"])
@pytest.mark.parametrize("channels", [128, 300, 33])
def test_products_are_close_to_float(channels: int, bias: Any) -> None:
    rows, weight = correlated(50, channels), normal(channels, 23, seed=4)
    model = product_of(rows, weight, bias)
    quantize = quantise_products(model, IDS)
    onnx.checker.check_model(quantize)
    assert bits_of(quantize) == [4]
    assert kinds(quantize)["MatMul"] == 0
    assert error(model, quantize) < 0.05


def test_a_row_depends_on_no_other() -> None:
    rows = normal(50, 64)
    rows[7] *= 1000
    quantize = quantise_products(product_of(rows, normal(64, 8, seed=1)), TEXTS)
    together, alone = evaluate(quantize, [[1, 7], [9, 3]]), evaluate(quantize, [[1]])
    np.testing.assert_allclose(together[0, 0], alone[0, 0], atol=1e-5)


def test_a_product_that_would_lose_too_much_keeps_8_bits() -> None:
    rows, weight = normal(50, 64), normal(64, 16, seed=1)
    rows[:, ::8] *= 1e-3
    weight[::8] *= 20  # large where nothing comes in: what matters is left a level or two
    model = product_of(rows, weight)
    quantize = quantise_products(model, IDS)
    assert bits_of(quantize) == [8]
    assert error(model, quantize) < 0.15  # in 4 bits it would be 0.5


def test_only_the_products_that_need_them_keep_8_bits() -> None:
    rows, weight = normal(50, 64), normal(64, 64, seed=1)
    rows[:, ::8] *= 1e-3
    rough = weight.copy()
    rough[::8] *= 20
    model = parse(
        "x = Gather(rows, input_ids) y = MatMul(x, rough) z = Tanh(y) out = MatMul(z, weight)",
        "float[a, b, c] out",
        {"rows": rows, "weight": correlated(64, 64), "rough": rough},
    )
    assert sorted(bits_of(quantise_products(model, IDS))) == [4, 8]


def test_products_of_one_activation_are_one_node() -> None:
    model = parse(
        "x = Gather(rows, input_ids) q = MatMul(x, w) k = MatMul(x, v) out = Concat<axis = 2>(k, q)",
        "float[a, b, c] out",
        {"rows": correlated(50, 128), "w": normal(128, 16), "v": normal(128, 8, seed=1)},
    )
    quantize = quantise_products(model, IDS)
    assert (kinds(quantize)["MatMulNBits"], kinds(quantize)["Split"]) == (1, 1)
    assert error(model, quantize) < 0.05


def test_layers_that_share_weights_share_them_in_4_bits() -> None:
    model = parse(
        "x = Gather(rows, input_ids) y = MatMul(x, weight) t = Tanh(y) out = MatMul(t, weight)",
        "float[a, b, c] out",
        {"rows": normal(50, 128), "weight": normal(128, 128, seed=1) / 8},
    )
    quantize = quantise_products(model, IDS)
    assert kinds(quantize)["MatMulNBits"] == 2
    assert sum(values.dtype == np.uint8 for values in constants_of(quantize).values()) == 1


@pytest.mark.parametrize("texts", [[], [[]]])
def test_texts_of_no_tokens_do_no_harm(texts: list[list[int]]) -> None:
    model = product_of(normal(50, 128), normal(128, 24, seed=1))
    assert error(model, quantise_products(model, texts)) < 0.2


def test_a_graph_without_products_stays() -> None:
    model = parse("out = Gather(rows, input_ids)", "float[a, b, c] out", {"rows": normal(50, 16)})
    assert quantise_products(model, TEXTS) == model


def test_the_given_graph_is_left_as_it_was() -> None:
    model = product_of(normal(5, 4), normal(4, 4))
    before = model.SerializeToString(deterministic=True)
    quantise_products(model, [[0]])
    assert model.SerializeToString(deterministic=True) == before
