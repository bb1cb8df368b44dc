from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.onnx.graph import Graph
from edgeembed_exporters.quantization.calibration import ActivationStatistics
from edgeembed_exporters.quantization.linear import (
    LinearGroup,
    combine_over_shared_weights,
    find_linear_groups,
    split_gemms,
)
from onnx import helper

from ..graphs import Array, evaluate, initializers, op_counts, parse  # noqa: TID252  # tests are not a package
from .conftest import IDS, normal

THREE = """
    x = Gather(rows, input_ids)
    unbiased_q = MatMul(x, w1) q = Add(unbiased_q, b1)
    k = MatMul(x, w2)
    unbiased_v = MatMul(x, w3) v = Add(b3, unbiased_v)
    q_plus_k = Add(q, k) sum = Add(q_plus_k, v)
    repeated = MatMul(sum, w1)
    out = Add(repeated, scalar)
"""


def model_with(statements: str, out: str = "float[a, b, c] out", **constants: Array) -> onnx.ModelProto:
    arrays = {"rows": normal(30, 8), **{f"w{i}": normal(8, 8, seed=i) for i in (1, 2, 3)}, "scalar": np.float32(0.5)}
    arrays |= {f"b{i}": normal(8, seed=10 + i) for i in (1, 3)}
    arrays |= constants
    return parse(statements, out, {name: np.asarray(values) for name, values in arrays.items()})


def groups_of(model: onnx.ModelProto) -> list[LinearGroup]:
    return find_linear_groups(Graph(model))


def test_linear_layers_of_one_activation_form_a_group() -> None:
    model = model_with(THREE)
    stored = initializers(model)
    qkv, repeated_group = groups_of(model)
    assert [layer.output for layer in qkv.layers] == ["q", "k", "v"]
    assert (qkv.activation, qkv.weight_names, qkv.output) == ("x", ("w1", "w2", "w3"), "q.concatenated")
    np.testing.assert_array_equal(qkv.weight, np.hstack([stored["w1"], stored["w2"], stored["w3"]]))
    np.testing.assert_array_equal(qkv.bias, np.concatenate([stored["b1"], np.zeros(8), stored["b3"]]))
    assert (repeated_group.activation, repeated_group.weight_names, repeated_group.output) == (
        "sum",
        ("w1",),
        "repeated",
    )  # a scalar is no bias


def test_a_common_matmul_has_the_outputs_of_its_layers() -> None:
    model = model_with(THREE)
    merged = onnx.ModelProto()
    merged.CopyFrom(model)
    graph = Graph(merged)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for group in find_linear_groups(graph):
        weight = graph.add_initializer(f"{group.output}.w", group.weight)
        bias = graph.add_initializer(f"{group.output}.b", group.bias)
        nodes = [helper.make_node("MatMul", [group.activation, weight], [f"{group.output}.plain"])]
        nodes.append(helper.make_node("Add", [f"{group.output}.plain", bias], [group.output]))
        replacements |= group.replacements(graph, nodes)
    graph.replace_nodes(replacements)
    onnx.checker.check_model(merged, full_check=True)
    assert (op_counts(merged)["MatMul"], op_counts(merged)["Split"]) == (2, 1)
    np.testing.assert_allclose(evaluate(merged, IDS), evaluate(model, IDS), atol=1e-5)


@pytest.mark.parametrize(
    "after",
    [
        "out = Add(y, y)",
        "more = Add(y, b1) out = Mul(more, y)",
        "z = Sin(y) out = Add(y, z)",
        "out = Add(y, two_dimensions)",
    ],
)
def test_other_additions_are_not_taken_for_a_bias(after: str) -> None:
    model = model_with(f"x = Gather(rows, input_ids) y = MatMul(x, w1) {after}", two_dimensions=normal(1, 8))
    (group,) = groups_of(model)
    assert group.output == "y"
    assert not group.bias.any()


@pytest.mark.parametrize(
    "line",
    ["out = MatMul(x, x)", "transposed_x = Transpose(x) out = MatMul(square, x)", "out = MatMul(x, three_dimensions)"],
)
def test_only_matmuls_with_a_constant_matrix_are_found(line: str) -> None:
    model = model_with(f"x = Gather(rows, input_ids) {line}", square=normal(20, 20), three_dimensions=normal(1, 8, 8))
    assert groups_of(model) == []


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("transposed", [0, 1])
def test_a_gemm_becomes_a_matmul_with_the_same_values(transposed: int, with_bias: bool) -> None:
    inputs = "x, matrix, bias" if with_bias else "x, matrix"
    model = model_with(
        "embedded = Gather(rows, input_ids) x = Flatten<axis = 2>(embedded)"
        f" out = Gemm<transB = {transposed}>({inputs})",
        "float[a, b] out",
        matrix=normal(5, 8) if transposed else normal(8, 5),
        bias=normal(5, seed=4),
    )
    before = evaluate(model, IDS)
    split_gemms(model)
    assert op_counts(model)["Gemm"] == 0
    (group,) = groups_of(model)
    assert group.bias.any() == with_bias
    np.testing.assert_allclose(evaluate(model, IDS), before, atol=1e-6)


@pytest.mark.parametrize("attribute", ["alpha = 2.0", "beta = 0.5", "transA = 1"])
def test_a_gemm_that_is_no_linear_layer_is_kept(attribute: str) -> None:
    model = model_with(
        f"embedded = Gather(rows, input_ids) x = Flatten<axis = 2>(embedded) out = Gemm<{attribute}>(x, matrix, bias)",
        "float[a, b] out",
        matrix=normal(8, 5),
        bias=normal(5),
    )
    split_gemms(model)
    assert op_counts(model)["Gemm"] == 1


def test_statistics_of_layers_that_share_weights_are_combined() -> None:
    model = model_with(
        "x = Gather(rows, input_ids) y = MatMul(x, w1) z = MatMul(y, w1) shifted_z = Add(z, scalar)"
        " out = MatMul(shifted_z, w2)"
    )
    rows = {name: normal(5 + seed, 8, seed=seed) for seed, name in enumerate(["x", "y", "shifted_z"])}
    measured = {name: ActivationStatistics.of(each) for name, each in rows.items()}
    combined = combine_over_shared_weights(groups_of(model), measured)
    both = np.concatenate([rows["x"], rows["y"]])
    assert combined["x"] is combined["y"]
    assert combined["x"].tokens == 11
    np.testing.assert_array_equal(combined["x"].minimum, both.min(axis=0))
    np.testing.assert_array_equal(combined["x"].maximum, both.max(axis=0))
    np.testing.assert_allclose(combined["x"].total, both.sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(combined["x"].moment, both.T @ both, rtol=1e-4, atol=1e-5)
    assert combined["shifted_z"] is measured["shifted_z"]
