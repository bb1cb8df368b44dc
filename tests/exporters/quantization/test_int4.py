from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from edgeembed_exporters.quantization.blockwise import quantize_rows
from edgeembed_exporters.quantization.int4 import quantize_by_gptq, quantize_int4

from ..graphs import evaluate, initializers, op_counts, parse  # noqa: TID252  # tests are not a package
from .conftest import IDS, TEXTS, Floats, error, linear_model, normal

Moment = npt.NDArray[np.float64]


def bits_of(model: onnx.ModelProto) -> list[int]:
    nodes = [node for node in model.graph.node if node.op_type == "MatMulNBits"]
    return [attribute.i for node in nodes for attribute in node.attribute if attribute.name == "bits"]


def correlated(rows: int, channels: int) -> Floats:
    """Return activations with few principal directions, as in a trained encoder."""
    activations: Floats = normal(rows, 6) @ normal(6, channels, seed=1) + np.float32(0.1) * normal(
        rows, channels, seed=2
    )
    return activations


def loss(rounded: Floats, weight: Floats, moment: Moment) -> float:
    difference = (rounded - weight).astype(np.float64)
    return float((difference * (moment @ difference)).sum())


@pytest.mark.parametrize("block_size", [16, 32])
@pytest.mark.parametrize("channels", [32, 40])
def test_gptq_loses_less_than_rounding_to_nearest_on_correlated_activations(channels: int, block_size: int) -> None:
    activations, weight = correlated(300, channels), normal(channels, 24, seed=3)
    moment = (activations.T @ activations).astype(np.float64)
    plain = quantize_rows(np.ascontiguousarray(weight.T), block_size, 4).dequantized()[:, :channels].T
    found = quantize_by_gptq(weight, moment, block_size, 4)
    assert loss(found.dequantized()[:, :channels].T, weight, moment) < 0.5 * loss(plain, weight, moment)


def test_gptq_equals_rounding_to_nearest_on_uncorrelated_activations() -> None:
    weight = normal(32, 24)
    found = quantize_by_gptq(weight, np.eye(32), 16, 4)
    np.testing.assert_array_equal(found.quantized, quantize_rows(np.ascontiguousarray(weight.T), 16, 4).quantized)


def test_weights_on_the_grid_are_exact() -> None:
    activations = correlated(200, 32)
    weight: Floats = (np.random.default_rng(0).integers(-8, 8, (32, 24)) / 4).astype(np.float32)
    weight[::16] = -2  # the lowest value, in every block
    found = quantize_by_gptq(weight, (activations.T @ activations).astype(np.float64), 16, 4)
    np.testing.assert_array_equal(found.dequantized().T, weight)


def test_the_weights_are_not_changed() -> None:
    weight = normal(32, 24)
    before = weight.copy()
    quantize_by_gptq(weight, np.eye(32), 16, 4)
    np.testing.assert_array_equal(weight, before)


@pytest.mark.parametrize("bias", [None, normal(23, seed=2)], ids=["no bias", "bias"])
@pytest.mark.parametrize("channels", [128, 300, 33])
def test_linear_layers_are_close_to_float32(channels: int, bias: Any) -> None:
    rows, weight = correlated(50, channels), normal(channels, 23, seed=4)
    model = linear_model(rows, weight, bias)
    quantized = quantize_int4(model, IDS)
    onnx.checker.check_model(quantized)
    assert bits_of(quantized) == [4]
    assert op_counts(quantized)["MatMul"] == 0
    assert error(model, quantized) < 0.05


def test_tokens_are_independent() -> None:
    rows = normal(50, 64)
    rows[7] *= 1000
    quantized = quantize_int4(linear_model(rows, normal(64, 8, seed=1)), TEXTS)
    together, alone = evaluate(quantized, [[1, 7], [9, 3]]), evaluate(quantized, [[1]])
    np.testing.assert_allclose(together[0, 0], alone[0, 0], atol=1e-5)


def test_a_layer_that_would_lose_too_much_has_8_bits() -> None:
    rows, weight = normal(50, 64), normal(64, 16, seed=1)
    rows[:, ::8] *= 1e-3
    weight[::8] *= 20  # large weights of small channels take the range of the scale
    model = linear_model(rows, weight)
    quantized = quantize_int4(model, IDS)
    assert bits_of(quantized) == [8]
    assert error(model, quantized) < 0.15  # with 4 bits: 0.5


def test_only_layers_that_need_them_have_8_bits() -> None:
    rows, weight = normal(50, 64), normal(64, 64, seed=1)
    rows[:, ::8] *= 1e-3
    rough = weight.copy()
    rough[::8] *= 20
    model = parse(
        "x = Gather(rows, input_ids) y = MatMul(x, rough) z = Tanh(y) out = MatMul(z, weight)",
        "float[a, b, c] out",
        {"rows": rows, "weight": correlated(64, 64), "rough": rough},
    )
    assert sorted(bits_of(quantize_int4(model, IDS))) == [4, 8]


def test_layers_of_one_activation_become_one_node() -> None:
    model = parse(
        "x = Gather(rows, input_ids) q = MatMul(x, w) k = MatMul(x, v) out = Concat<axis = 2>(k, q)",
        "float[a, b, c] out",
        {"rows": correlated(50, 128), "w": normal(128, 16), "v": normal(128, 8, seed=1)},
    )
    quantized = quantize_int4(model, IDS)
    assert (op_counts(quantized)["MatMulNBits"], op_counts(quantized)["Split"]) == (1, 1)
    assert error(model, quantized) < 0.05


def test_shared_weights_are_stored_once() -> None:
    model = parse(
        "x = Gather(rows, input_ids) y = MatMul(x, weight) t = Tanh(y) out = MatMul(t, weight)",
        "float[a, b, c] out",
        {"rows": normal(50, 128), "weight": normal(128, 128, seed=1) / 8},
    )
    quantized = quantize_int4(model, IDS)
    assert op_counts(quantized)["MatMulNBits"] == 2
    assert sum(values.dtype == np.uint8 for values in initializers(quantized).values()) == 1


@pytest.mark.parametrize("texts", [[], [[]]])
def test_empty_calibration_text_is_accepted(texts: list[list[int]]) -> None:
    model = linear_model(normal(50, 128), normal(128, 24, seed=1))
    assert error(model, quantize_int4(model, texts)) < 0.2


def test_a_model_without_linear_layers_is_not_changed() -> None:
    model = parse("out = Gather(rows, input_ids)", "float[a, b, c] out", {"rows": normal(50, 16)})
    assert quantize_int4(model, TEXTS) == model


def test_the_model_is_not_changed() -> None:
    model = linear_model(normal(5, 4), normal(4, 4))
    before = model.SerializeToString(deterministic=True)
    quantize_int4(model, [[0]])
    assert model.SerializeToString(deterministic=True) == before
