from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.fusion.qattention import fuse_qattention

from ..graphs import Array, evaluate, op_counts, parse  # noqa: TID252  # tests are not a package
from ..quantization.conftest import normal  # noqa: TID252  # tests are not a package

WIDTH, HEADS = 32, 4
IDS = [[3, 1, 4, 1, 5, 9], [2, 6, 5, 0, 0, 0]]
MASK = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
PROJECTION = (
    "embedded = Gather(rows, input_ids) x = QuantizeLinear(embedded, scale, zero)"
    ' all = com.microsoft.MatMulIntegerToFloat(x, weight, scale, scales, zero, "", bias)'
    " q, k, v = Split<axis = -1>(all, sizes)"
)
PADDING = "padding = Cast<to = 6>(attention_mask)"
ATTENTION = f"com.microsoft.MultiHeadAttention<num_heads = {HEADS}, scale = 0.3>"
NOT_FUSED = {
    "keys with a second consumer": f"{PROJECTION} y = {ATTENTION}(q, k, v) out = Add(y, k)",
    "a projection with a second consumer": f"{PROJECTION} y = {ATTENTION}(q, k, v)"
    " z, w, u = Split<axis = -1>(all, sizes) out = Add(y, w)",
    "keys before queries": f"{PROJECTION} out = {ATTENTION}(k, q, v)",
    "an attention bias": f'{PROJECTION} out = {ATTENTION}(q, k, v, "", "", biases)',
    "a projection without a bias": f"{PROJECTION} out = {ATTENTION}(q, k, v)".replace(', "", bias)', ")"),
    "queries with an activation function": f"{PROJECTION} p = Tanh(q) out = {ATTENTION}(p, k, v)",
}


def model_with(statements: str) -> onnx.ModelProto:
    constants: dict[str, Array] = {
        "rows": normal(50, WIDTH),
        "scale": np.array(0.03, dtype=np.float32),
        "zero": np.array(128, dtype=np.uint8),
        "weight": np.random.default_rng(1).integers(-64, 65, (WIDTH, 3 * WIDTH)).astype(np.int8),
        "scales": np.abs(normal(3 * WIDTH, seed=2)) / 100,
        "bias": normal(3 * WIDTH, seed=3),
        "sizes": np.array([WIDTH] * 3, dtype=np.int64),
        "biases": normal(1, HEADS, 6, 6, seed=4),
    }
    return parse(statements, f"float[a, b, {WIDTH}] out", constants)


@pytest.mark.parametrize("arguments", ['(q, k, v, "", padding)', "(q, k, v)"], ids=["padded", "without padding"])
def test_attention_and_projection_are_fused_into_one_node_with_the_same_values(arguments: str) -> None:
    model = model_with(f"{PADDING} {PROJECTION} out = {ATTENTION}{arguments}")
    before = evaluate(model, IDS, mask=MASK)
    fuse_qattention(model)
    onnx.checker.check_model(model)
    assert (op_counts(model)["QAttention"], op_counts(model)["MultiHeadAttention"], op_counts(model)["Split"]) == (
        1,
        0,
        0,
    )
    kept = MASK[..., None] if "padding" in arguments else 1  # outputs at padding tokens are arbitrary
    np.testing.assert_allclose(evaluate(model, IDS, mask=MASK) * kept, before * kept, atol=1e-5)


@pytest.mark.parametrize("statements", NOT_FUSED.values(), ids=NOT_FUSED)
def test_unsupported_attention_is_not_changed(statements: str) -> None:
    model = model_with(statements)
    before = evaluate(model, IDS)
    fuse_qattention(model)
    assert op_counts(model)["QAttention"] == 0
    np.testing.assert_array_equal(evaluate(model, IDS), before)
