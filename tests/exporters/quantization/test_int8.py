from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from edgeembed_exporters.quantization.int8 import quantize_int8
from onnx import numpy_helper

from ..graphs import evaluate, initializers, op_counts, parse  # noqa: TID252  # tests are not a package
from .conftest import IDS, TEXTS, assert_no_saturation, error, int8_matmuls, linear_model, normal

PRODUCERS = {
    "another operator": "x = Identity(embedded)",
    "Tanh": "x = Tanh(embedded)",
    "Relu": "x = Relu(embedded)",
    "Gelu": "x = com.microsoft.Gelu(embedded)",
    "LayerNormalization": "x = LayerNormalization<axis = -1>(embedded, gain, offset)",
}
ZERO_POINTS = {"Relu": 0, "Gelu": 28}
every_producer = pytest.mark.parametrize("producer", PRODUCERS)


@pytest.mark.parametrize("bias", [None, normal(24, seed=2)], ids=["no bias", "bias"])
@every_producer
def test_linear_layers_are_close_to_float32(producer: str, bias: Any) -> None:
    model = linear_model(normal(50, 32), normal(32, 24, seed=1), bias, before=PRODUCERS[producer])
    quantized = quantize_int8(model, TEXTS)
    onnx.checker.check_model(quantized)
    assert (op_counts(quantized)["MatMulIntegerToFloat"], op_counts(quantized)["MatMul"]) == (1, 0)
    assert error(model, quantized) < 0.02


def test_a_dense_layer_after_pooling_is_quantized_too() -> None:
    model = parse(
        "x = Gather(rows, input_ids) mean = ReduceMean<keepdims = 0>(x, axis) y = Gemm<transB = 1>(mean, weight, bias)"
        " out = Tanh(y)",
        "float[a, b] out",
        {"rows": normal(50, 32), "axis": np.array([1]), "weight": normal(8, 32, seed=1) / 6, "bias": normal(8)},
    )
    quantized = quantize_int8(model, TEXTS)
    assert (op_counts(quantized)["MatMulIntegerToFloat"], op_counts(quantized)["Gemm"]) == (1, 0)
    assert error(model, quantized) < 0.02


@every_producer
def test_matmuls_do_not_saturate(producer: str) -> None:
    rows = normal(50, 32)
    rows[3] = 7  # every value is the maximum of its token
    rows[4] = -7
    quantized = quantize_int8(linear_model(rows, normal(32, 24, seed=1), before=PRODUCERS[producer]), TEXTS)
    assert_no_saturation(quantized, IDS)
    assert int8_matmuls(quantized)[0][2] == ZERO_POINTS.get(producer, 128)


def test_the_minimum_of_gelu_is_representable_in_tokens_with_a_small_maximum() -> None:
    rows = np.linspace(-3, 0.1, 50 * 32, dtype=np.float32).reshape(50, 32)
    quantized = quantize_int8(linear_model(rows, normal(32, 24, seed=1), before=PRODUCERS["Gelu"]), TEXTS)
    all_rows = [list(range(50))]
    values = evaluate(quantized, all_rows, "x.quantized").astype(int)
    token_max = evaluate(quantized, all_rows, "x.token_max")
    dequantized = (values - 28) * token_max / 227
    assert values.min() == 0
    np.testing.assert_allclose(dequantized, evaluate(quantized, all_rows, "x"), atol=token_max.max() / 454 * 1.01)


def test_channels_far_from_zero_are_centered() -> None:
    model = linear_model(normal(50, 32), normal(32, 24, seed=1), before=PRODUCERS["LayerNormalization"])
    offset = next(tensor for tensor in model.graph.initializer if tensor.name == "offset")
    offset.CopyFrom(numpy_helper.from_array(100 * normal(32), "offset"))
    quantized = quantize_int8(model, TEXTS)
    values = evaluate(quantized, IDS, "y.centered.quantized").astype(int)
    assert np.abs(values.mean(axis=(0, 1)) - 128).max() < 64
    assert np.abs(evaluate(model, IDS) - evaluate(quantized, IDS)).max() < 0.5  # of thousands


def test_values_beyond_the_range_are_clipped() -> None:
    rows = normal(50, 32)
    rows[7] = 0
    rows[7, 3] = 1000  # 5.6 standard deviations
    model = linear_model(rows, normal(32, 24, seed=1), before=PRODUCERS["LayerNormalization"])
    quantized = quantize_int8(model, [[1, 2], [3]])
    values = evaluate(quantized, [[7]], "y.centered.quantized")
    assert values[0, 0, 3] in {0, 255}
    assert_no_saturation(quantized, [[7]])


@pytest.mark.parametrize("parameters", ["gain, offset", "other, offset"])
def test_shared_weights_are_stored_once_after_equal_and_after_different_layer_norms(parameters: str) -> None:
    model = parse(
        "embedded = Gather(rows, input_ids) x = LayerNormalization<axis = -1>(embedded, gain, offset)"
        f" y = MatMul(x, weight) t = LayerNormalization<axis = -1>(y, {parameters}) out = MatMul(t, weight)",
        "float[a, b, c] out",
        {
            "rows": normal(50, 16),
            "weight": normal(16, 16, seed=1),
            "gain": 1 + normal(16, seed=2) / 4,
            "other": 1 + normal(16, seed=5) / 4,
            "offset": normal(16, seed=3),
        },
    )
    quantized = quantize_int8(model, TEXTS)
    assert op_counts(quantized)["ReduceMax"] == (0 if "gain" in parameters else 2)  # scales per token
    assert sum(values.dtype == np.int8 for values in initializers(quantized).values()) == 1
    assert error(model, quantized) < 0.05


def test_a_channel_of_large_activations_does_not_hide_the_others() -> None:
    rows, weight = normal(50, 32), normal(32, 16, seed=1)
    rows[:, 3] *= 300
    weight[3] /= 300
    model = linear_model(rows, weight)
    assert error(model, quantize_int8(model, [[30, 31, 32]])) < 0.03


@pytest.mark.parametrize("bias", [None, normal(4, seed=2)], ids=["no bias", "bias"])
@pytest.mark.parametrize("producer", ["another operator", "Tanh", "Relu", "Gelu"])
def test_a_token_of_zeros_returns_the_bias(producer: str, bias: Any) -> None:
    rows = np.stack([np.zeros(4), np.ones(4), -np.ones(4)]).astype(np.float32)
    model = linear_model(rows, normal(4, 4, seed=1), bias, before=PRODUCERS[producer])
    actual = evaluate(quantize_int8(model, [[1, 2]]), [[0, 1, 2]])
    assert np.isfinite(actual).all()
    np.testing.assert_allclose(actual[0, 0], np.zeros(4) if bias is None else bias, atol=0.01)


@every_producer
def test_tokens_are_independent(producer: str) -> None:
    rows = normal(50, 8)
    rows[7] *= 1000
    quantized = quantize_int8(linear_model(rows, normal(8, 8, seed=1), before=PRODUCERS[producer]), [[1, 2]])
    together, alone = evaluate(quantized, [[1, 7], [9, 3]]), evaluate(quantized, [[1]])
    np.testing.assert_array_equal(together[0, 0], alone[0, 0])


def test_layers_of_one_activation_become_one_node() -> None:
    weights = {f"w{i}": normal(16, width, seed=i) for i, width in enumerate((16, 16, 8))}
    model = parse(
        "x = Gather(rows, input_ids) q = MatMul(x, w0) plain = MatMul(x, w1) k = Add(plain, bias) v = MatMul(x, w2)"
        " out = Concat<axis = 2>(v, k, q)",
        "float[a, b, c] out",
        {"rows": normal(50, 16), "bias": normal(16, seed=8), **weights},
    )
    quantized = quantize_int8(model, TEXTS)
    counts = op_counts(quantized)
    assert (counts["MatMulIntegerToFloat"], counts["QuantizeLinear"], counts["Split"]) == (1, 1, 1)
    assert error(model, quantized) < 0.02


def test_consecutive_linear_layers_after_a_layer_norm_are_quantized() -> None:  # as in ALBERT and ELECTRA
    model = parse(
        "embedded = Gather(rows, input_ids) x = LayerNormalization<axis = -1>(embedded, gain, offset)"
        " y = MatMul(x, w0) out = MatMul(y, w1)",
        "float[a, b, c] out",
        {"rows": normal(50, 16), "gain": normal(16, seed=1), "offset": normal(16, seed=2)}
        | {f"w{i}": normal(16, 16, seed=3 + i) for i in (0, 1)},
    )
    quantized = quantize_int8(model, TEXTS)
    onnx.checker.check_model(quantized)
    assert (len(int8_matmuls(quantized)), op_counts(quantized)["ReduceMax"]) == (2, 1)
    assert error(model, quantized) < 0.03


def test_shared_weights_are_stored_once() -> None:
    model = parse(
        "x = Gather(rows, input_ids) y = MatMul(x, weight) t = Tanh(y) z = MatMul(t, weight) u = Tanh(z)"
        " out = MatMul(u, weight)",
        "float[a, b, c] out",
        {"rows": normal(50, 16), "weight": normal(16, 16, seed=1)},
    )
    quantized = quantize_int8(model, TEXTS)
    assert len(int8_matmuls(quantized)) == 3
    assert sum(values.dtype == np.int8 for values in initializers(quantized).values()) == 1
    assert error(model, quantized) < 0.1


def test_a_model_without_linear_layers_is_not_changed() -> None:
    model = parse("out = Gather(rows, input_ids)", "float[a, b, c] out", {"rows": normal(50, 16)})
    assert quantize_int8(model, TEXTS) == model


@pytest.mark.parametrize("texts", [[], [[]], [[], [3]]])
def test_empty_calibration_text_is_accepted(texts: list[list[int]]) -> None:
    model = linear_model(normal(50, 32), normal(32, 24, seed=1))
    assert error(model, quantize_int8(model, texts)) < 0.03


def test_an_activation_may_be_an_output_of_the_graph() -> None:
    model = linear_model(normal(50, 32), normal(32, 24, seed=1))
    model.graph.output.append(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None))
    assert error(model, quantize_int8(model, TEXTS)) < 0.02


def test_the_model_is_not_changed() -> None:
    model = linear_model(normal(2, 4), normal(4, 4))
    before = model.SerializeToString(deterministic=True)
    quantize_int8(model, [[0]])
    assert model.SerializeToString(deterministic=True) == before


def outlier_model(producer: str) -> onnx.ModelProto:
    """Return a model in whose layer one channel is 100 times as large as the others, in every second token."""
    rows, weight = np.abs(normal(50, 64)), (normal(64, 24, seed=1) / 8).astype(np.float32)
    rows[::2, 5] = 100
    weight[5, 3] = 20  # a column in which this channel has a large weight
    return linear_model(rows, weight, normal(24, seed=2), before=PRODUCERS[producer])


@pytest.mark.parametrize("producer", ["Relu", "Gelu"])
def test_an_outlier_channel_after_an_activation_function_is_multiplied_in_float32(producer: str) -> None:
    model = outlier_model(producer)
    quantized = quantize_int8(model, [IDS[0]])
    exact, actual = evaluate(model, IDS), evaluate(quantized, IDS)
    columns = [column for column in range(24) if column != 3]
    assert op_counts(quantized)["Gather"] == op_counts(model)["Gather"] + 1
    # Without it, a step of the tokens with the outlier is 0.4, and the error about 0.5.
    assert np.abs(exact - actual)[..., columns].max() < 0.05
    assert np.abs(exact - actual)[:, ::2, 3].max() < 1  # of 2,000
    assert np.abs(exact - actual)[:, 1::2, 3].max() < 0.05
    assert_no_saturation(quantized, IDS)


def test_a_layer_without_outliers_has_no_nodes_for_them() -> None:
    model = linear_model(normal(50, 64), normal(64, 24, seed=1), before=PRODUCERS["Gelu"])
    quantized = quantize_int8(model, [IDS[0]])
    assert (op_counts(quantized)["Clip"], op_counts(quantized)["MatMul"]) == (0, 0)


def test_channels_beyond_calibration_text_are_clipped_only_beside_outliers() -> None:
    model = outlier_model("Relu")
    rows = next(tensor for tensor in model.graph.initializer if tensor.name == "rows")
    changed = numpy_helper.to_array(rows).copy()
    changed[40, 7] = 10  # within calibration text nothing but the outlier is beyond 3.5
    rows.CopyFrom(numpy_helper.from_array(changed, "rows"))
    quantized = quantize_int8(model, [IDS[0]])
    token_max = evaluate(quantized, [[40]], "x.token_max")
    assert 3 < float(token_max[0, 0, 0]) < 6
