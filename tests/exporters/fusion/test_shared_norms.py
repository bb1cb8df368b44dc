from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.fusion.shared_norms import share_norms

from ..graphs import Array, evaluate, op_counts, parse  # noqa: TID252  # tests are not a package
from ..quantization.conftest import IDS, normal  # noqa: TID252  # tests are not a package

BLOCK = (
    "rows = Gather(table, input_ids) norm = LayerNormalization<axis = -1>(rows, gain, offset)"
    " centered = LayerNormalization<axis = -1>(rows, small_gain, small_offset)"
    " levels = QuantizeLinear(centered, step, middle) {branch} {sum} out = Tanh(sum)"
)
MATMUL = "branch = com.microsoft.MatMulIntegerToFloat(levels, weight, step, step, middle{bias})"
OTHER = "values = DequantizeLinear(levels, step, middle) branch = Exp(values)"


RESIDUAL = "sum = Add(branch, norm)"


def model_of(branch: str, statements: str, **constants: Array) -> onnx.ModelProto:
    factors = np.exp(normal(8, seed=4))
    gain, offset = normal(8, seed=1), normal(8, seed=2)
    arrays: dict[str, Array] = {
        "table": normal(30, 8),
        "gain": gain,
        "offset": offset,
        "small_gain": gain / factors,
        "small_offset": (offset - normal(8, seed=5)) / factors,
        "step": np.array(0.05, dtype=np.float32),
        "middle": np.array(128, dtype=np.uint8),
    }
    if "weight" in branch:
        arrays["weight"] = np.clip(20 * normal(8, 8, seed=3), -64, 64).astype(np.int8)
    return parse(BLOCK.format(branch=branch, sum=statements), "float[a, b, c] out", arrays | constants)


@pytest.mark.parametrize("bias", [False, True])
def test_the_matmul_takes_the_shift_of_the_residual(bias: bool) -> None:
    constants: dict[str, Array] = {"bias": normal(8, seed=6)} if bias else {}
    model = model_of(MATMUL.format(bias=", , bias" if bias else ""), RESIDUAL, **constants)
    before = evaluate(model, IDS)
    share_norms(model)
    counts = op_counts(model)
    assert (counts["LayerNormalization"], counts["Mul"], counts["Add"]) == (1, 1, 1)
    np.testing.assert_allclose(evaluate(model, IDS), before, atol=1e-5)


@pytest.mark.parametrize("statements", ["sum = Add(branch, norm)", "sum = Add(norm, branch)"])
def test_another_branch_gets_the_shift_by_an_addition(statements: str) -> None:
    model = model_of(OTHER, statements)
    before = evaluate(model, IDS)
    share_norms(model)
    onnx.checker.check_model(model, full_check=True)
    assert (op_counts(model)["LayerNormalization"], op_counts(model)["Add"]) == (1, 2)
    np.testing.assert_allclose(evaluate(model, IDS), before, atol=1e-5)


def test_a_channel_of_weight_zero_keeps_its_value() -> None:
    gain = normal(8, seed=1)
    gain[3] = 0
    model = model_of(OTHER, RESIDUAL, gain=gain, small_gain=gain / 2)
    before = evaluate(model, IDS)
    share_norms(model)
    assert op_counts(model)["LayerNormalization"] == 1
    np.testing.assert_allclose(evaluate(model, IDS), before, atol=1e-5)


@pytest.mark.parametrize(
    "statements",
    [
        "first = Add(branch, norm) sum = Mul(first, norm)",  # another reader of the layer norm
        "sum = Mul(branch, norm)",
        "first = Add(branch, norm) sum = Mul(first, centered)",  # another reader of the other layer norm
        "sum = Add(branch, rows)",
    ],
)
def test_other_readers_keep_both_layer_norms(statements: str) -> None:
    model = model_of(OTHER, statements)
    before, nodes = evaluate(model, IDS), op_counts(model)["LayerNormalization"]
    share_norms(model)
    assert op_counts(model)["LayerNormalization"] == (nodes if "norm" in statements else 1)
    np.testing.assert_array_equal(evaluate(model, IDS), before)


def test_graph_outputs_keep_their_values() -> None:
    model = model_of(OTHER, RESIDUAL)
    model.graph.output.append(onnx.helper.make_tensor_value_info("norm", onnx.TensorProto.FLOAT, None))
    before = evaluate(model, IDS, "norm")
    share_norms(model)
    np.testing.assert_array_equal(evaluate(model, IDS, "norm"), before)
