from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from edgeembed_exporters.precision.int8 import quantise_products
from onnx import numpy_helper

from ..graphs import constants_of, evaluate, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import IDS, TEXTS, assert_pairs_fit_16_bits, error, normal, product_of, products

MAKERS = {
    "anything": "x = Identity(looked)",
    "Tanh": "x = Tanh(looked)",
    "Relu": "x = Relu(looked)",
    "Gelu": "x = com.microsoft.Gelu(looked)",
    "LayerNormalization": "x = LayerNormalization<axis = -1>(looked, gain, offset)",
}
ZEROS = {"Relu": 0, "Gelu": 20, "LayerNormalization": 128}
every_maker = pytest.mark.parametrize("maker", MAKERS)


@pytest.mark.parametrize("bias", [None, normal(24, seed=2)], ids=["no bias", "bias"])
@every_maker
def test_products_are_close_to_float(maker: str, bias: Any) -> None:
    model = product_of(normal(50, 32), normal(32, 24, seed=1), bias, before=MAKERS[maker])
    quantize = quantise_products(model, TEXTS)
    onnx.checker.check_model(quantize)
    assert (kinds(quantize)["MatMulIntegerToFloat"], kinds(quantize)["MatMul"]) == (1, 0)
    assert error(model, quantize) < 0.02


def test_a_dense_layer_after_the_pooling_is_a_product_too() -> None:
    model = parse(
        "x = Gather(rows, input_ids) mean = ReduceMean<keepdims = 0>(x, axis) y = Gemm<transB = 1>(mean, weight, bias)"
        " out = Tanh(y)",
        "float[a, b] out",
        {"rows": normal(50, 32), "axis": np.array([1]), "weight": normal(8, 32, seed=1) / 6, "bias": normal(8)},
    )
    quantize = quantise_products(model, TEXTS)
    assert (kinds(quantize)["MatMulIntegerToFloat"], kinds(quantize)["Gemm"]) == (1, 0)
    assert error(model, quantize) < 0.02


@every_maker
def test_sums_of_two_products_fit_16_bits(maker: str) -> None:
    rows = normal(50, 32)
    rows[3] = 7  # all at the peak
    rows[4] = -7
    quantize = quantise_products(product_of(rows, normal(32, 24, seed=1), before=MAKERS[maker]), TEXTS)
    assert_pairs_fit_16_bits(quantize, IDS)
    assert products(quantize)[0][2] == ZEROS.get(maker, 90)


def test_the_least_that_a_gelu_gives_has_a_level_however_small_its_largest_is() -> None:
    rows = np.linspace(-3, 0.1, 50 * 32, dtype=np.float32).reshape(50, 32)
    quantize = quantise_products(product_of(rows, normal(32, 24, seed=1), before=MAKERS["Gelu"]), TEXTS)
    every_row = [list(range(50))]
    levels = evaluate(quantize, every_row, "x.levels").astype(int)
    peaks = evaluate(quantize, every_row, "x.peaks")
    given = (levels - 20) * peaks / 160
    assert levels.min() == 0
    np.testing.assert_allclose(given, evaluate(quantize, every_row, "x"), atol=peaks.max() / 320 * 1.01)


def test_channels_far_from_zero_are_centred_before_they_are_rounded() -> None:
    model = product_of(normal(50, 32), normal(32, 24, seed=1), before=MAKERS["LayerNormalization"])
    offset = next(tensor for tensor in model.graph.initializer if tensor.name == "offset")
    offset.CopyFrom(numpy_helper.from_array(100 * normal(32), "offset"))
    quantize = quantise_products(model, TEXTS)
    levels = evaluate(quantize, IDS, "y.levels").astype(int)
    assert np.abs(levels.mean(axis=(0, 1)) - 128).max() < 64
    assert np.abs(evaluate(model, IDS) - evaluate(quantize, IDS)).max() < 0.5  # of thousands


def test_a_token_beyond_all_levels_ends_at_the_last() -> None:
    rows = normal(50, 32)
    rows[7] = 0
    rows[7, 3] = 1000  # 5.6 deviations
    model = product_of(rows, normal(32, 24, seed=1), before=MAKERS["LayerNormalization"])
    quantize = quantise_products(model, [[1, 2], [3]])
    levels = evaluate(quantize, [[7]], "y.levels")
    assert levels[0, 0, 3] in {0, 255}
    assert_pairs_fit_16_bits(quantize, [[7]])


@pytest.mark.parametrize("share", ["gain, offset", "other, offset"])
def test_layers_share_weights_after_the_same_normalisation_and_after_others(share: str) -> None:
    model = parse(
        "looked = Gather(rows, input_ids) x = LayerNormalization<axis = -1>(looked, gain, offset) y = MatMul(x, weight)"
        f" t = LayerNormalization<axis = -1>(y, {share}) out = MatMul(t, weight)",
        "float[a, b, c] out",
        {
            "rows": normal(50, 16),
            "weight": normal(16, 16, seed=1),
            "gain": 1 + normal(16, seed=2) / 4,
            "other": 1 + normal(16, seed=5) / 4,
            "offset": normal(16, seed=3),
        },
    )
    quantize = quantise_products(model, TEXTS)
    assert [zero for *_, zero in products(quantize)] == [128 if "gain" in share else 90] * 2
    assert sum(values.dtype == np.int8 for values in constants_of(quantize).values()) == 1
    assert error(model, quantize) < 0.05


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
    quantize = quantise_products(product_of(rows, normal(8, 8, seed=1), before=MAKERS[maker]), [[1, 2]])
    together, alone = evaluate(quantize, [[1, 7], [9, 3]]), evaluate(quantize, [[1]])
    np.testing.assert_array_equal(together[0, 0], alone[0, 0])


def test_products_of_one_activation_are_one_node() -> None:
    weights = {f"w{i}": normal(16, width, seed=i) for i, width in enumerate((16, 16, 8))}
    model = parse(
        "x = Gather(rows, input_ids) q = MatMul(x, w0) plain = MatMul(x, w1) k = Add(plain, bias) v = MatMul(x, w2)"
        " out = Concat<axis = 2>(v, k, q)",
        "float[a, b, c] out",
        {"rows": normal(50, 16), "bias": normal(16, seed=8), **weights},
    )
    quantize = quantise_products(model, TEXTS)
    found = kinds(quantize)
    assert (found["MatMulIntegerToFloat"], found["QuantizeLinear"], found["Split"]) == (1, 1, 1)
    assert error(model, quantize) < 0.02


def test_layers_that_share_weights_share_them_in_int8() -> None:
    model = parse(
        "x = Gather(rows, input_ids) y = MatMul(x, weight) t = Tanh(y) z = MatMul(t, weight) u = Tanh(z)"
        " out = MatMul(u, weight)",
        "float[a, b, c] out",
        {"rows": normal(50, 16), "weight": normal(16, 16, seed=1)},
    )
    quantize = quantise_products(model, TEXTS)
    assert len(products(quantize)) == 3
    assert sum(values.dtype == np.int8 for values in constants_of(quantize).values()) == 1
    assert error(model, quantize) < 0.1


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
