from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from edgeembed_exporters.quantization.int8 import quantize_int8

from ..graphs import evaluate, initializers, op_counts, parse  # noqa: TID252  # tests are not a package
from .conftest import TEXTS, Floats, error, largest_pair_sum, normal

ROWS = 600


def embedding_model(rows: Floats, bias: Any = None) -> onnx.ModelProto:
    after = "out = Identity(y)" if bias is None else "out = Add(y, bias)"
    constants = {"rows": rows, "weight": normal(32, 24, seed=1), **({} if bias is None else {"bias": bias})}
    return parse(f"x = Gather(rows, input_ids) y = MatMul(x, weight) {after}", "float[a, b, c] out", constants)


def four_bit_rows() -> Floats:
    levels = np.random.default_rng(0).integers(-8, 8, (ROWS, 32)).astype(np.float32)
    levels[:, 0], levels[5] = -8, 0
    rows: Floats = levels * normal(ROWS, 1)
    return rows


@pytest.mark.parametrize("bias", [None, normal(24, seed=2)], ids=["no bias", "bias"])
def test_int8_embedding_rows_are_multiplied_without_rounding_them_again(bias: Any) -> None:
    model = embedding_model(normal(ROWS, 32) * np.logspace(-1, 1, ROWS, dtype=np.float32)[:, None], bias)
    quantized = quantize_int8(model, TEXTS)
    onnx.checker.check_model(quantized)
    counts = op_counts(quantized)
    assert (counts["Gather"], counts["QuantizeLinear"], counts["Cast"]) == (2, 0, 0)
    assert error(model, quantized) < 0.02


def test_matmuls_of_embedding_rows_do_not_saturate() -> None:
    rows = normal(ROWS, 32)
    rows[3], rows[4] = 7, -7
    quantized = quantize_int8(embedding_model(rows), TEXTS)
    node = next(node for node in quantized.graph.node if node.op_type == "MatMulIntegerToFloat")
    values = evaluate(quantized, [list(range(ROWS))], node.input[0])
    weights = initializers(quantized)[node.input[1]]
    assert values.dtype == np.uint8
    assert (int(values.max()), int(values.min())) == (255, 1)
    assert largest_pair_sum(weights) * 255 < 2**15


def test_an_embedding_table_is_stored_once() -> None:
    stored = initializers(quantize_int8(embedding_model(normal(ROWS, 32)), TEXTS))
    assert sum(values.nbytes for values in stored.values() if values.shape[:1] == (ROWS,)) == ROWS * (32 + 4)


@pytest.mark.parametrize("rows", [normal(ROWS, 32), four_bit_rows()], ids=["int8", "four bits"])
def test_embedding_rows_with_a_second_consumer_are_quantized_per_token(rows: Floats) -> None:
    model = parse(
        "x = Gather(rows, input_ids) y = MatMul(x, weight) out = Add(x, y)",
        "float[a, b, c] out",
        {"rows": rows, "weight": normal(32, 32, seed=1)},
    )
    quantized = quantize_int8(model, TEXTS)
    counts = op_counts(quantized)
    assert (counts["QuantizeLinear"], counts["ReduceMax"]) == (1, 1)
    assert error(model, quantized) < 0.02


def test_an_embedding_table_with_two_lookups_is_stored_once() -> None:
    model = parse(
        "x = Gather(rows, input_ids) y = MatMul(x, weight) z = Gather(rows, attention_mask) w = MatMul(z, weight)"
        " out = Add(w, y)",
        "float[a, b, c] out",
        {"rows": normal(ROWS, 32), "weight": normal(32, 32, seed=1)},
    )
    quantized = quantize_int8(model, TEXTS)
    assert sum(values.shape == (ROWS, 32) for values in initializers(quantized).values()) == 1
    assert error(model, quantized) < 0.02


@pytest.mark.parametrize("bias", [None, normal(24, seed=2)], ids=["no bias", "bias"])
def test_rows_of_four_bits_are_multiplied_without_rounding_them_again(bias: Any) -> None:
    model = embedding_model(four_bit_rows(), bias)
    quantized = quantize_int8(model, TEXTS)
    onnx.checker.check_model(quantized)
    counts = op_counts(quantized)
    assert (counts["GatherBlockQuantized"], counts["QuantizeLinear"], counts["ReduceMax"]) == (1, 1, 0)
    assert error(model, quantized) < 0.01


def test_matmuls_of_rows_of_four_bits_read_their_levels() -> None:
    quantized = quantize_int8(embedding_model(four_bit_rows()), TEXTS)
    node = next(node for node in quantized.graph.node if node.op_type == "MatMulIntegerToFloat")
    values = evaluate(quantized, [list(range(ROWS))], node.input[0])
    assert (int(values.min()), int(values.max())) == (0, 15)
    assert (values[0, 5] == 8).all()  # the row of zeros
    weights = initializers(quantized)[node.input[1]]
    assert 2 * 15 * np.abs(weights.astype(int)).max() < 2**15
