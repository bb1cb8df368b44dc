from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.fusion.unit_length import fuse_unit_length

from ..graphs import Array, evaluate, kinds, parse  # noqa: TID252  # the tests are no package

LENGTH = "x = ReduceSum<keepdims = 0>(rows, middle) length = ReduceL2(x, last)"
FUSED = {
    "a clipped length": f"{LENGTH} least = Clip(length, tiny) out = Div(x, least)",
    "the larger of two": f"{LENGTH} least = Max(length, tiny) out = Div(x, least)",
}
STAYS = {
    "a least length that is not tiny": f"{LENGTH} least = Clip(length, one) out = Div(x, least)",
    "a greatest length": f"{LENGTH} least = Clip(length, tiny, one) out = Div(x, least)",
    "another's length": f"{LENGTH} least = Clip(length, tiny) y = Sin(x) out = Div(y, least)",
    "a sum of magnitudes": "x = ReduceSum<keepdims = 0>(rows, middle) length = ReduceL1(x, last)"
    " least = Clip(length, tiny) out = Div(x, least)",
}
IDS = [[3, 1], [0, 0], [2, 5]]


def division(statements: str) -> onnx.ModelProto:
    table = np.random.default_rng(0).normal(size=(9, 6)).astype(np.float32)
    table[0] = 0
    constants: dict[str, Array] = {
        "table": table,
        "middle": np.array([1]),
        "last": np.array([1]),
        "tiny": np.array(1e-12, dtype=np.float32),
        "one": np.array(1, dtype=np.float32),
    }
    return parse(f"rows = Gather(table, input_ids) {statements}", "float[batch, 6] out", constants)


def fuse(model: onnx.ModelProto) -> onnx.ModelProto:
    fused = onnx.ModelProto()
    fused.CopyFrom(model)
    fuse_unit_length(fused)
    return fused


@pytest.mark.parametrize("statements", FUSED.values(), ids=FUSED)
def test_a_division_by_the_length_becomes_one_node_and_zeros_stay(statements: str) -> None:
    model = division(statements)
    fused = fuse(model)
    onnx.checker.check_model(fused)
    assert kinds(fused) == {"Gather": 1, "ReduceSum": 1, "LpNormalization": 1}
    np.testing.assert_allclose(evaluate(fused, IDS), evaluate(model, IDS), atol=1e-6)
    assert not evaluate(fused, IDS)[1].any()


@pytest.mark.parametrize("statements", STAYS.values(), ids=STAYS)
def test_other_divisions_stay(statements: str) -> None:
    model = division(statements)
    assert kinds(fuse(model)) == kinds(model)
