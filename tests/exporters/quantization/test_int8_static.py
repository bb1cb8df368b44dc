from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.quantization.int8 import quantize_int8

from ..graphs import Array, evaluate, initializers, op_counts, parse  # noqa: TID252  # tests are not a package
from .conftest import TEXTS, error, largest_pair_sum, normal

WIDTH, HEADS = 32, 4
PROJECTIONS = (
    "embedded = Gather(rows, input_ids) x = LayerNormalization<axis = -1>(embedded, gain, offset)"
    " q = MatMul(x, wq) k = MatMul(x, wk) v0 = MatMul(x, wv) v = Add(v0, bv)"
)
ATTENTION = f"a = com.microsoft.MultiHeadAttention<num_heads = {HEADS}>(q, k, v)"
OUT = "y = MatMul(a, wo) out = Add(y, bo)"
NOT_CENTERED = {
    "values with a second consumer": f"{PROJECTIONS} {ATTENTION} {OUT.replace('out =', 'z =')} out = Add(z, v)",
    "an attention with a second consumer": f"{PROJECTIONS} {ATTENTION} {OUT.replace('out =', 'z =')} out = Add(z, a)",
    "values that share their weight": f"{PROJECTIONS.replace('wk', 'wv')} {ATTENTION} {OUT}",
    "values without a linear layer": f"{PROJECTIONS} w = Tanh(v) {ATTENTION.replace('v)', 'w)')} {OUT}",
}


def attention_model(statements: str = f"{PROJECTIONS} {ATTENTION} {OUT}") -> onnx.ModelProto:
    constants: dict[str, Array] = {
        "rows": normal(50, WIDTH),
        "gain": 1 + normal(WIDTH, seed=3) / 4,
        "offset": normal(WIDTH, seed=4),
        "bv": 20 * normal(WIDTH, seed=5),  # channels far from zero, with different centers
        "bo": normal(WIDTH, seed=6),
    }
    for seed, name in enumerate(("wq", "wk", "wv", "wo"), start=7):
        constants[name] = normal(WIDTH, WIDTH, seed=seed) / 8
    constants["wv"] *= np.logspace(-1, 1, WIDTH, dtype=np.float32)
    return parse(statements, f"float[a, b, {WIDTH}] out", constants)


def test_attention_outputs_have_static_scales() -> None:
    model = attention_model()
    quantized = quantize_int8(model, TEXTS)
    onnx.checker.check_model(quantized)
    counts = op_counts(quantized)
    assert (counts["QAttention"], counts["MatMulIntegerToFloat"]) == (1, 1)
    assert (counts["ReduceMax"], counts["QuantizeLinear"]) == (0, 2)
    assert error(model, quantized) < 0.02


def test_attention_outputs_are_centered() -> None:
    values = evaluate(quantize_int8(attention_model(), TEXTS), TEXTS[:1], "a.quantized").astype(int)
    assert np.abs(values - 128).max() <= 127 / 2 + 1  # calibration text uses half of the range
    assert values.std() > 10


def test_matmuls_of_attention_outputs_do_not_saturate() -> None:
    quantized = quantize_int8(attention_model(), TEXTS)
    stored = initializers(quantized)
    for node in quantized.graph.node:
        if node.op_type in {"MatMulIntegerToFloat", "QAttention"}:
            assert largest_pair_sum(stored[node.input[1]]) * 255 < 2**15


@pytest.mark.parametrize("statements", NOT_CENTERED.values(), ids=NOT_CENTERED)
def test_attention_outputs_that_cannot_be_centered_have_a_scale_per_token(statements: str) -> None:
    model = attention_model(statements)
    quantized = quantize_int8(model, TEXTS)
    assert op_counts(quantized)["ReduceMax"] >= 1
    assert error(model, quantized) < 0.02
