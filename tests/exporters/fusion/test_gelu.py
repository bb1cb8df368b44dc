from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from edgeembed_exporters.fusion.gelu import fuse_gelu

from ..graphs import kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import assert_same_values

ERF = "y = Div(x, root) e = Erf(y) more = Add(e, one)"
FUSED = {
    "x * (1 + erf) / 2": f"{ERF} all = Mul(x, more) out = Mul(all, half)",
    "x / 2 * (1 + erf)": f"{ERF} small = Mul(x, half) out = Mul(small, more)",
    "(1 + erf) * (x / 2)": f"{ERF} small = Mul(half, x) out = Mul(more, small)",
    "x * ((1 + erf) / 2)": f"{ERF} share = Mul(half, more) out = Mul(x, share)",
    "a factor instead of a quotient": "y = Mul(x, inverse) e = Erf(y) more = Add(one, e)"
    " all = Mul(more, x) out = Mul(all, half)",
}
STAYS = {
    "the tanh approximation": "c = Mul(x, x) cubed = Mul(c, x) bent = Mul(cubed, half) sum = Add(x, bent)"
    " y = Mul(sum, inverse) e = Tanh(y) more = Add(e, one) all = Mul(x, more) out = Mul(all, half)",
    "another width": "y = Div(x, other) e = Erf(y) more = Add(e, one) all = Mul(x, more) out = Mul(all, half)",
    "another half": f"{ERF} all = Mul(x, more) out = Mul(all, other)",
    "more than one": "y = Div(x, root) e = Erf(y) more = Add(e, other) all = Mul(x, more) out = Mul(all, half)",
    "of one thing times another": f"{ERF} z = Sin(x) all = Mul(z, more) out = Mul(all, half)",
    "an error function that others read": f"{ERF} all = Mul(x, more) most = Mul(all, half) out = Add(most, e)",
}


def activation(statements: str) -> onnx.ModelProto:
    numbers = {"root": math.sqrt(2), "inverse": 1 / math.sqrt(2), "one": 1, "half": 0.5, "other": 1.7}
    constants = {name: np.array(value, dtype=np.float32) for name, value in numbers.items() if name in statements}
    constants["table"] = np.linspace(-6, 6, 60 * 8, dtype=np.float32).reshape(60, 8)
    return parse(f"x = Gather(table, input_ids) {statements}", "float[batch, tokens, 8] out", constants)


def fuse(model: onnx.ModelProto) -> onnx.ModelProto:
    fused = onnx.ModelProto()
    fused.CopyFrom(model)
    fuse_gelu(fused)
    return fused


@pytest.mark.parametrize("statements", FUSED.values(), ids=FUSED)
def test_an_exact_gelu_becomes_one_node_of_the_same_values(statements: str) -> None:
    model = activation(statements)
    assert kinds(fuse(model)) == {"Gather": 1, "Gelu": 1}
    assert_same_values(model, fuse(model))


@pytest.mark.parametrize("statements", STAYS.values(), ids=STAYS)
def test_what_is_no_exact_gelu_stays(statements: str) -> None:
    model = activation(statements)
    assert list(fuse(model).graph.node) == list(model.graph.node)
