from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from edgeembed_exporters.precision.int8 import quantise_products

from ..graphs import constants_of, evaluate, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import IDS, TEXTS, assert_pairs_fit_16_bits, error, normal, product_of, products

MAKERS = {
    "anything": "x = Identity(looked)",
    "Tanh": "x = Tanh(looked)",
    "Relu": "x = Relu(looked)",
    "Gelu": "x = com.microsoft.Gelu(looked)",
}
UNSIGNED = {"Relu", "Gelu"}
every_maker = pytest.mark.parametrize("maker", MAKERS)


@pytest.mark.parametrize("bias", [None, normal(24, seed=2)], ids=["no bias", "bias"])
@every_maker
def test_products_are_close_to_float(maker: str, bias: Any) -> None:
    model = product_of(normal(50, 32), normal(32, 24, seed=1), bias, before=MAKERS[maker])
    quantised = quantise_products(model, TEXTS)
    onnx.checker.check_model(quantised)
    assert (kinds(quantised)["MatMulIntegerToFloat"], kinds(quantised)["MatMul"]) == (1, 0)
    assert error(model, quantised) < 0.02


def test_a_dense_layer_after_the_pooling_is_a_product_too() -> None:
    model = parse(
        "x = Gather(rows, input_ids) mean = ReduceMean<keepdims = 0>(x, axis) y = Gemm<transB = 1>(mean, weight, bias)"
        " out = Tanh(y)",
        "float[a, b] out",
        {"rows": normal(50, 32), "axis": np.array([1]), "weight": normal(8, 32, seed=1) / 6, "bias": normal(8)},
    )
    quantised = quantise_products(model, TEXTS)
    assert (kinds(quantised)["MatMulIntegerToFloat"], kinds(quantised)["Gemm"]) == (1, 0)
    assert error(model, quantised) < 0.02


@every_maker
def test_sums_of_two_products_fit_16_bits(maker: str) -> None:
    rows = normal(50, 32)
    rows[3] = 7  # all at the peak
    rows[4] = -7
    quantised = quantise_products(product_of(rows, normal(32, 24, seed=1), before=MAKERS[maker]), TEXTS)
    assert_pairs_fit_16_bits(quantised, IDS)
    assert products(quantised)[0][2] == (0 if maker in UNSIGNED else 90)


@pytest.mark.parametrize(("maker", "least"), [("Gelu", 0.17), ("Relu", 0.0)])
def test_what_is_never_far_below_zero_is_shifted_up_and_the_bias_makes_up_for_it(maker: str, least: float) -> None:
    weight, bias = normal(32, 24, seed=1), normal(24, seed=2)
    quantised = quantise_products(product_of(normal(50, 32), weight, bias, before=MAKERS[maker]), TEXTS)
    (_, levels, _), known = products(quantised)[0], constants_of(quantised)
    stored = levels * known["out.scales"]
    np.testing.assert_allclose(known["out.bias"], bias - least * stored.sum(axis=0), atol=1e-5)
    assert ("x.shift" in known) == (least > 0)


def test_a_channel_of_large_activations_does_not_drown_the_others() -> None:
    rows, weight = normal(50, 32), normal(32, 16, seed=1)
    rows[:, 3] *= 300
    weight[3] /= 300
    model = product_of(rows, weight)
    assert error(model, quantise_products(model, [[30, 31, 32]])) < 0.03


@pytest.mark.parametrize("bias", [None, normal(4, seed=2)], ids=["no bias", "bias"])
@pytest.mark.parametrize("maker", ["anything", "Tanh", "Relu", "Gelu"])
def test_a_row_of_zeros_gives_the_bias(maker: str, bias: Any) -> None:
    rows = np.stack([np.zeros(4), np.ones(4), -np.ones(4)]).astype(np.float32)
    model = product_of(rows, normal(4, 4, seed=1), bias, before=MAKERS[maker])
    given = evaluate(quantise_products(model, [[1, 2]]), [[0, 1, 2]])
    assert np.isfinite(given).all()
    np.testing.assert_allclose(given[0, 0], np.zeros(4) if bias is None else bias, atol=0.01)


@every_maker
def test_a_row_depends_on_no_other(maker: str) -> None:
    rows = normal(50, 8)
    rows[7] *= 1000
    quantised = quantise_products(product_of(rows, normal(8, 8, seed=1), before=MAKERS[maker]), [[1, 2]])
    together, alone = evaluate(quantised, [[1, 7], [9, 3]]), evaluate(quantised, [[1]])
    np.testing.assert_array_equal(together[0, 0], alone[0, 0])


def test_products_of_one_activation_are_one_node() -> None:
    weights = {f"w{i}": normal(16, width, seed=i) for i, width in enumerate((16, 16, 8))}
    model = parse(
        "x = Gather(rows, input_ids) q = MatMul(x, w0) plain = MatMul(x, w1) k = Add(plain, bias) v = MatMul(x, w2)"
        " out = Concat<axis = 2>(v, k, q)",
        "float[a, b, c] out",
        {"rows": normal(50, 16), "bias": normal(16, seed=8), **weights},
    )
    quantised = quantise_products(model, TEXTS)
    found = kinds(quantised)
    assert (found["MatMulIntegerToFloat"], found["QuantizeLinear"], found["Split"]) == (1, 1, 1)
    assert error(model, quantised) < 0.02


def test_layers_that_share_weights_share_them_in_int8() -> None:
    model = parse(
        "x = Gather(rows, input_ids) y = MatMul(x, weight) t = Tanh(y) z = MatMul(t, weight) u = Tanh(z)"
        " out = MatMul(u, weight)",
        "float[a, b, c] out",
        {"rows": normal(50, 16), "weight": normal(16, 16, seed=1)},
    )
    quantised = quantise_products(model, TEXTS)
    assert len(products(quantised)) == 3
    assert sum(values.dtype == np.int8 for values in constants_of(quantised).values()) == 1
    assert error(model, quantised) < 0.1


def test_a_graph_without_products_stays() -> None:
    model = parse("out = Gather(rows, input_ids)", "float[a, b, c] out", {"rows": normal(50, 16)})
    assert quantise_products(model, TEXTS) == model


@pytest.mark.parametrize("texts", [[], [[]], [[], [3]]])
def test_texts_of_no_tokens_do_no_harm(texts: list[list[int]]) -> None:
    model = product_of(normal(50, 32), normal(32, 24, seed=1))
    assert error(model, quantise_products(model, texts)) < 0.03


def test_an_activation_may_be_an_output_as_well() -> None:
    model = product_of(normal(50, 32), normal(32, 24, seed=1))
    model.graph.output.append(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None))
    assert error(model, quantise_products(model, TEXTS)) < 0.02


def test_the_given_graph_is_left_as_it_was() -> None:
    model = product_of(normal(2, 4), normal(4, 4))
    before = model.SerializeToString(deterministic=True)
    quantise_products(model, [[0]])
    assert model.SerializeToString(deterministic=True) == before
