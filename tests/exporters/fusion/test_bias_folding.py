from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.fusion.bias_folding import fold_biases

from ..graphs import Array, evaluate, op_counts, parse  # noqa: TID252  # tests are not a package
from ..quantization.conftest import IDS, normal  # noqa: TID252  # tests are not a package

BLOCK = (
    "rows = Gather(table, input_ids) norm = LayerNormalization<axis = -1>(rows, gain, offset)"
    " branch = Mul(rows, rows) biased = Add(branch, bias) {sum} out = Tanh(sum)"
)


def residual_model(statements: str, **constants: Array) -> onnx.ModelProto:
    arrays = {"table": normal(30, 8), "gain": normal(8, seed=1), "offset": normal(8, seed=2), "bias": normal(8, seed=3)}
    return parse(BLOCK.format(sum=statements), "float[a, b, c] out", arrays | constants)


@pytest.mark.parametrize("statements", ["sum = Add(norm, biased)", "sum = Add(biased, norm)"])
def test_the_bias_of_a_residual_branch_is_folded_into_the_layer_norm(statements: str) -> None:
    model = residual_model(statements)
    before = evaluate(model, IDS)
    fold_biases(model)
    onnx.checker.check_model(model, full_check=True)
    assert op_counts(model)["Add"] == 1
    np.testing.assert_allclose(evaluate(model, IDS), before, atol=1e-6)


@pytest.mark.parametrize(
    "statements",
    [
        "first = Add(norm, biased) sum = Mul(first, norm)",  # another consumer of the layer norm
        "first = Add(norm, biased) sum = Mul(first, biased)",
        "first = Add(norm, biased) sum = Mul(first, branch)",
        "sum = Mul(norm, biased)",
        "sum = Add(biased, biased)",
        "sum = Add(rows, biased)",
    ],
)
def test_a_bias_is_kept_if_another_node_reads_the_tensors(statements: str) -> None:
    model = residual_model(statements)
    before, adds = evaluate(model, IDS), op_counts(model)["Add"]
    fold_biases(model)
    assert op_counts(model)["Add"] == adds
    np.testing.assert_array_equal(evaluate(model, IDS), before)


@pytest.mark.parametrize("name", ["norm", "biased", "branch"])
def test_graph_outputs_keep_their_values(name: str) -> None:
    model = residual_model("sum = Add(norm, biased)")
    model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    before = evaluate(model, IDS, name)
    fold_biases(model)
    np.testing.assert_array_equal(evaluate(model, IDS, name), before)


def test_a_scalar_bias_is_kept() -> None:
    model = residual_model("sum = Add(norm, biased)", bias=normal(1))
    before = model.SerializeToString(deterministic=True)
    fold_biases(model)
    assert model.SerializeToString(deterministic=True) == before
