from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.editing import Editor
from edgeembed_exporters.precision.products import Group, find_products, over_shared, split_gemms
from onnx import helper

from ..graphs import Array, constants_of, evaluate, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import IDS, normal

THREE = """
    x = Gather(rows, input_ids)
    plain_q = MatMul(x, w1) q = Add(plain_q, b1)
    k = MatMul(x, w2)
    plain_v = MatMul(x, w3) v = Add(b3, plain_v)
    qk = Add(q, k) sum = Add(qk, v)
    again = MatMul(sum, w1)
    out = Add(again, far)
"""


def graph(statements: str, out: str = "float[a, b, c] out", **constants: Array) -> onnx.ModelProto:
    known = {"rows": normal(30, 8), **{f"w{i}": normal(8, 8, seed=i) for i in (1, 2, 3)}, "far": np.float32(0.5)}
    known |= {f"b{i}": normal(8, seed=10 + i) for i in (1, 3)}
    known |= constants
    return parse(statements, out, {name: np.asarray(values) for name, values in known.items()})


def groups_of(model: onnx.ModelProto) -> list[Group]:
    return find_products(Editor(model))


def test_products_of_one_activation_are_a_group_with_their_biases() -> None:
    model = graph(THREE)
    known = constants_of(model)
    three, one = groups_of(model)
    assert [product.output for product in three.products] == ["q", "k", "v"]
    assert (three.activation, three.weights, three.output) == ("x", ("w1", "w2", "w3"), "q.all")
    np.testing.assert_array_equal(three.weight, np.hstack([known["w1"], known["w2"], known["w3"]]))
    np.testing.assert_array_equal(three.bias, np.concatenate([known["b1"], np.zeros(8), known["b3"]]))
    assert (one.activation, one.weights, one.output) == ("sum", ("w1",), "again")  # a scalar is no bias


def test_a_group_done_as_one_gives_what_its_products_gave() -> None:
    model = graph(THREE)
    done = onnx.ModelProto()
    done.CopyFrom(model)
    editor = Editor(done)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for group in find_products(editor):
        weight = editor.add_constant(f"{group.output}.w", group.weight)
        bias = editor.add_constant(f"{group.output}.b", group.bias)
        nodes = [helper.make_node("MatMul", [group.activation, weight], [f"{group.output}.plain"])]
        nodes.append(helper.make_node("Add", [f"{group.output}.plain", bias], [group.output]))
        replacements |= group.replacements(editor, nodes)
    editor.replace(replacements)
    onnx.checker.check_model(done, full_check=True)
    assert (kinds(done)["MatMul"], kinds(done)["Split"]) == (2, 1)
    np.testing.assert_allclose(evaluate(done, IDS), evaluate(model, IDS), atol=1e-5)


@pytest.mark.parametrize(
    "after",
    [
        "out = Add(y, y)",
        "more = Add(y, b1) out = Mul(more, y)",
        "z = Sin(y) out = Add(y, z)",
        "out = Add(y, wide)",
    ],
)
def test_what_is_no_bias_stays_where_it_is(after: str) -> None:
    model = graph(f"x = Gather(rows, input_ids) y = MatMul(x, w1) {after}", wide=normal(1, 8))
    (group,) = groups_of(model)
    assert group.output == "y"
    assert not group.bias.any()


@pytest.mark.parametrize(
    "line", ["out = MatMul(x, x)", "turned = Transpose(x) out = MatMul(square, x)", "out = MatMul(x, deep)"]
)
def test_only_products_with_a_constant_matrix_are_found(line: str) -> None:
    model = graph(f"x = Gather(rows, input_ids) {line}", square=normal(20, 20), deep=normal(1, 8, 8))
    assert groups_of(model) == []


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("transposed", [0, 1])
def test_a_gemm_becomes_a_product_of_the_same_values(transposed: int, with_bias: bool) -> None:
    inputs = "x, matrix, bias" if with_bias else "x, matrix"
    model = graph(
        f"looked = Gather(rows, input_ids) x = Flatten<axis = 2>(looked) out = Gemm<transB = {transposed}>({inputs})",
        "float[a, b] out",
        matrix=normal(5, 8) if transposed else normal(8, 5),
        bias=normal(5, seed=4),
    )
    before = evaluate(model, IDS)
    split_gemms(model)
    assert kinds(model)["Gemm"] == 0
    (group,) = groups_of(model)
    assert group.bias.any() == with_bias
    np.testing.assert_allclose(evaluate(model, IDS), before, atol=1e-6)


@pytest.mark.parametrize("choice", ["alpha = 2.0", "beta = 0.5", "transA = 1"])
def test_a_gemm_that_is_no_layer_stays(choice: str) -> None:
    model = graph(
        f"looked = Gather(rows, input_ids) x = Flatten<axis = 2>(looked) out = Gemm<{choice}>(x, matrix, bias)",
        "float[a, b] out",
        matrix=normal(8, 5),
        bias=normal(5),
    )
    split_gemms(model)
    assert kinds(model)["Gemm"] == 1


def test_what_is_measured_of_layers_that_share_weights_is_put_together() -> None:
    model = graph(
        "x = Gather(rows, input_ids) y = MatMul(x, w1) z = MatMul(y, w1) far_z = Add(z, far) out = MatMul(far_z, w2)"
    )
    measured = {name: normal(8, seed=seed) for seed, name in enumerate(["x", "y", "far_z"])}
    together = over_shared(groups_of(model), measured, np.maximum)
    np.testing.assert_array_equal(together["x"], np.maximum(measured["x"], measured["y"]))
    np.testing.assert_array_equal(together["y"], together["x"])
    np.testing.assert_array_equal(together["far_z"], measured["far_z"])
