from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.precision.int8 import quantise_products

from ..graphs import Array, constants_of, evaluate, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import TEXTS, error, normal

WIDTH, HEADS = 32, 4
LAYER = (
    "looked = Gather(rows, input_ids) x = LayerNormalization<axis = -1>(looked, gain, offset)"
    " q = MatMul(x, wq) k = MatMul(x, wk) v0 = MatMul(x, wv) v = Add(v0, bv)"
)
ATTENTION = f"a = com.microsoft.MultiHeadAttention<num_heads = {HEADS}>(q, k, v)"
OUT = "y = MatMul(a, wo) out = Add(y, bo)"
STAYS = {
    "values that something else reads": f"{LAYER} {ATTENTION} {OUT.replace('out =', 'z =')} out = Add(z, v)",
    "an attention that something else reads": f"{LAYER} {ATTENTION} {OUT.replace('out =', 'z =')} out = Add(z, a)",
    "a matrix that values share": f"{LAYER.replace('wk', 'wv')} {ATTENTION} {OUT}",
    "values that no product makes": f"{LAYER} w = Tanh(v) {ATTENTION.replace('v)', 'w)')} {OUT}",
}


def layer(statements: str = f"{LAYER} {ATTENTION} {OUT}") -> onnx.ModelProto:
    constants: dict[str, Array] = {
        "rows": normal(50, WIDTH),
        "gain": 1 + normal(WIDTH, seed=3) / 4,
        "offset": normal(WIDTH, seed=4),
        "bv": 20 * normal(WIDTH, seed=5),  # channels far from zero, and unlike each other
        "bo": normal(WIDTH, seed=6),
    }
    for seed, name in enumerate(("wq", "wk", "wv", "wo"), start=7):
        constants[name] = normal(WIDTH, WIDTH, seed=seed) / 8
    constants["wv"] *= np.logspace(-1, 1, WIDTH, dtype=np.float32)
    return parse(statements, f"float[a, b, {WIDTH}] out", constants)


def test_an_attention_is_rounded_without_looking_for_its_peaks() -> None:
    model = layer()
    made = quantise_products(model, TEXTS)
    onnx.checker.check_model(made)
    assert (kinds(made)["QAttention"], kinds(made)["MatMulIntegerToFloat"]) == (1, 1)
    assert (kinds(made)["ReduceMax"], kinds(made)["QuantizeLinear"]) == (0, 2)
    assert error(model, made) < 0.02


def test_channels_far_from_zero_are_centred() -> None:
    levels = evaluate(quantise_products(layer(), TEXTS), TEXTS[:1], "a.levels").astype(int)
    assert np.abs(levels - 128).max() <= 127 / 2 + 1  # calibration text uses half of the levels that there are
    assert levels.std() > 10


def test_sums_of_two_products_fit_16_bits() -> None:
    made = quantise_products(layer(), TEXTS)
    known = constants_of(made)
    for node in made.graph.node:
        if node.op_type in {"MatMulIntegerToFloat", "QAttention"}:
            assert 2 * 255 * np.abs(known[node.input[1]].astype(int)).max() < 2**15


@pytest.mark.parametrize("statements", STAYS.values(), ids=STAYS)
def test_what_cannot_be_centred_is_rounded_by_token(statements: str) -> None:
    model = layer(statements)
    made = quantise_products(model, TEXTS)
    assert kinds(made)["ReduceMax"] >= 1
    assert error(model, made) < 0.02
