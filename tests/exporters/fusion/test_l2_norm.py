from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.fusion.l2_norm import fuse_l2_norm

from ..graphs import Array, evaluate, op_counts, parse  # noqa: TID252  # tests are not a package

NORM = "x = ReduceSum<keepdims = 0>(rows, axis_1) norm = ReduceL2(x, last_axis)"
FUSED = {
    "Clip": f"{NORM} clipped = Clip(norm, epsilon) out = Div(x, clipped)",
    "Max": f"{NORM} clipped = Max(norm, epsilon) out = Div(x, clipped)",
}
NOT_FUSED = {
    "an epsilon that is not small": f"{NORM} clipped = Clip(norm, one) out = Div(x, clipped)",
    "Clip with a maximum": f"{NORM} clipped = Clip(norm, epsilon, one) out = Div(x, clipped)",
    "the norm of another tensor": f"{NORM} clipped = Clip(norm, epsilon) y = Sin(x) out = Div(y, clipped)",
    "the L1 norm": "x = ReduceSum<keepdims = 0>(rows, axis_1) norm = ReduceL1(x, last_axis)"
    " clipped = Clip(norm, epsilon) out = Div(x, clipped)",
}
IDS = [[3, 1], [0, 0], [2, 5]]


def model_with(statements: str) -> onnx.ModelProto:
    table = np.random.default_rng(0).normal(size=(9, 6)).astype(np.float32)
    table[0] = 0
    constants: dict[str, Array] = {
        "table": table,
        "axis_1": np.array([1]),
        "last_axis": np.array([1]),
        "epsilon": np.array(1e-12, dtype=np.float32),
        "one": np.array(1, dtype=np.float32),
    }
    return parse(f"rows = Gather(table, input_ids) {statements}", "float[batch, 6] out", constants)


def fuse(model: onnx.ModelProto) -> onnx.ModelProto:
    fused = onnx.ModelProto()
    fused.CopyFrom(model)
    fuse_l2_norm(fused)
    return fused


@pytest.mark.parametrize("statements", FUSED.values(), ids=FUSED)
def test_l2_normalization_is_fused_into_one_node_and_keeps_zero_rows(statements: str) -> None:
    model = model_with(statements)
    fused = fuse(model)
    onnx.checker.check_model(fused)
    assert op_counts(fused) == {"Gather": 1, "ReduceSum": 1, "LpNormalization": 1}
    np.testing.assert_allclose(evaluate(fused, IDS), evaluate(model, IDS), atol=1e-6)
    assert not evaluate(fused, IDS)[1].any()


@pytest.mark.parametrize("statements", NOT_FUSED.values(), ids=NOT_FUSED)
def test_other_divisions_are_not_changed(statements: str) -> None:
    model = model_with(statements)
    assert op_counts(fuse(model)) == op_counts(model)
