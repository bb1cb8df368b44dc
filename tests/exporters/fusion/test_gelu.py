from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from edgeembed_exporters.fusion.gelu import fuse_gelu

from ..graphs import op_counts, parse  # noqa: TID252  # tests are not a package
from .conftest import assert_same_values

ERF = "scaled = Div(x, sqrt_2) erf = Erf(scaled) sum = Add(erf, one)"
FUSED = {
    "x * (1 + erf) / 2": f"{ERF} product = Mul(x, sum) out = Mul(product, half)",
    "x / 2 * (1 + erf)": f"{ERF} half_x = Mul(x, half) out = Mul(half_x, sum)",
    "(1 + erf) * (x / 2)": f"{ERF} half_x = Mul(half, x) out = Mul(sum, half_x)",
    "x * ((1 + erf) / 2)": f"{ERF} half_sum = Mul(half, sum) out = Mul(x, half_sum)",
    "multiplied by 1 / sqrt 2": "scaled = Mul(x, inverse_sqrt_2) erf = Erf(scaled) sum = Add(one, erf)"
    " product = Mul(sum, x) out = Mul(product, half)",
}
NOT_FUSED = {
    "the tanh approximation": "squared = Mul(x, x) cubed = Mul(squared, x) small = Mul(cubed, half)"
    " bent = Add(x, small) scaled = Mul(bent, inverse_sqrt_2) tanh = Tanh(scaled) sum = Add(tanh, one)"
    " product = Mul(x, sum) out = Mul(product, half)",
    "another divisor": "scaled = Div(x, other) erf = Erf(scaled) sum = Add(erf, one)"
    " product = Mul(x, sum) out = Mul(product, half)",
    "another final factor": f"{ERF} product = Mul(x, sum) out = Mul(product, other)",
    "not 1": "scaled = Div(x, sqrt_2) erf = Erf(scaled) sum = Add(erf, other)"
    " product = Mul(x, sum) out = Mul(product, half)",
    "another input of the last product": f"{ERF} z = Sin(x) product = Mul(z, sum) out = Mul(product, half)",
    "an Erf with a second consumer": f"{ERF} product = Mul(x, sum) gelu = Mul(product, half) out = Add(gelu, erf)",
}


def activation_model(statements: str) -> onnx.ModelProto:
    scalars = {"sqrt_2": math.sqrt(2), "inverse_sqrt_2": 1 / math.sqrt(2), "one": 1, "half": 0.5, "other": 1.7}
    constants = {name: np.array(value, dtype=np.float32) for name, value in scalars.items() if name in statements}
    constants["table"] = np.linspace(-6, 6, 60 * 8, dtype=np.float32).reshape(60, 8)
    return parse(f"x = Gather(table, input_ids) {statements}", "float[batch, tokens, 8] out", constants)


def fuse(model: onnx.ModelProto) -> onnx.ModelProto:
    fused = onnx.ModelProto()
    fused.CopyFrom(model)
    fuse_gelu(fused)
    return fused


@pytest.mark.parametrize("statements", FUSED.values(), ids=FUSED)
def test_an_exact_gelu_is_fused_into_one_node_with_the_same_values(statements: str) -> None:
    model = activation_model(statements)
    assert op_counts(fuse(model)) == {"Gather": 1, "Gelu": 1}
    assert_same_values(model, fuse(model))


@pytest.mark.parametrize("statements", NOT_FUSED.values(), ids=NOT_FUSED)
def test_other_functions_are_not_changed(statements: str) -> None:
    model = activation_model(statements)
    assert list(fuse(model).graph.node) == list(model.graph.node)
