from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.precision.attentions import join_attentions

from ..graphs import Array, evaluate, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import normal

WIDTH, HEADS = 32, 4
IDS = [[3, 1, 4, 1, 5, 9], [2, 6, 5, 0, 0, 0]]
MASK = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
PRODUCT = (
    "looked = Gather(rows, input_ids) x = QuantizeLinear(looked, step, zero)"
    ' all = com.microsoft.MatMulIntegerToFloat(x, weight, step, scales, zero, "", bias)'
    " q, k, v = Split<axis = -1>(all, sizes)"
)
PADDING = "padding = Cast<to = 6>(attention_mask)"
ATTENTION = f"com.microsoft.MultiHeadAttention<num_heads = {HEADS}, scale = 0.3>"
STAYS = {
    "keys that something else reads": f"{PRODUCT} y = {ATTENTION}(q, k, v) out = Add(y, k)",
    "a product that something else reads": f"{PRODUCT} y = {ATTENTION}(q, k, v) z, w, u = Split<axis = -1>(all, sizes)"
    " out = Add(y, w)",
    "another order": f"{PRODUCT} out = {ATTENTION}(k, q, v)",
    "biases of its own": f'{PRODUCT} out = {ATTENTION}(q, k, v, "", "", biases)',
    "a product without a bias": f"{PRODUCT} out = {ATTENTION}(q, k, v)".replace(', "", bias)', ")"),
    "queries that are changed": f"{PRODUCT} p = Tanh(q) out = {ATTENTION}(p, k, v)",
}


def layer(statements: str) -> onnx.ModelProto:
    constants: dict[str, Array] = {
        "rows": normal(50, WIDTH),
        "step": np.array(0.03, dtype=np.float32),
        "zero": np.array(128, dtype=np.uint8),
        "weight": np.random.default_rng(1).integers(-64, 65, (WIDTH, 3 * WIDTH)).astype(np.int8),
        "scales": np.abs(normal(3 * WIDTH, seed=2)) / 100,
        "bias": normal(3 * WIDTH, seed=3),
        "sizes": np.array([WIDTH] * 3, dtype=np.int64),
        "biases": normal(1, HEADS, 6, 6, seed=4),
    }
    return parse(statements, f"float[a, b, {WIDTH}] out", constants)


@pytest.mark.parametrize("arguments", ['(q, k, v, "", padding)', "(q, k, v)"], ids=["padded", "without padding"])
def test_an_attention_and_its_product_become_one_node_that_gives_the_same(arguments: str) -> None:
    model = layer(f"{PADDING} {PRODUCT} out = {ATTENTION}{arguments}")
    before = evaluate(model, IDS, mask=MASK)
    join_attentions(model)
    onnx.checker.check_model(model)
    assert (kinds(model)["QAttention"], kinds(model)["MultiHeadAttention"], kinds(model)["Split"]) == (1, 0, 0)
    read = MASK[..., None] if "padding" in arguments else 1  # what stands where padding does is anything
    np.testing.assert_allclose(evaluate(model, IDS, mask=MASK) * read, before * read, atol=1e-5)


@pytest.mark.parametrize("statements", STAYS.values(), ids=STAYS)
def test_what_cannot_be_joined_stays(statements: str) -> None:
    model = layer(statements)
    before = evaluate(model, IDS)
    join_attentions(model)
    assert kinds(model)["QAttention"] == 0
    np.testing.assert_array_equal(evaluate(model, IDS), before)
