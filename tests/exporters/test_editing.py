from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.editing import CONTRIB, Editor, attributes, contrib_node
from onnx import helper, numpy_helper, parser

MODEL = """
<ir_version: 10, opset_import: ["": 18]>
g (float[n] x) => (float[n] out, float[n] other) {
    doubled = Mul(x, two)
    out = Add(doubled, doubled)
    more = Add(doubled, three)
    other = Add(more, two)
}
"""


@pytest.fixture
def model() -> onnx.ModelProto:
    made = parser.parse_model(MODEL)
    values = {"two": np.float32(2), "three": np.array([3], dtype=np.float32), "pair": np.array([1, 2], np.float32)}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in values.items())
    return made


def kinds(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_it_knows_who_makes_and_who_reads_a_tensor(model: onnx.ModelProto) -> None:
    editor = Editor(model)
    assert editor.maker("doubled") == model.graph.node[0]
    assert editor.maker("x") is None
    assert editor.maker("two") is None
    assert [node.output[0] for node in editor.readers("doubled")] == ["out", "more"]  # who reads it twice counts once
    assert editor.readers("out") == []


def test_it_knows_what_is_stored(model: onnx.ModelProto) -> None:
    editor = Editor(model)
    assert (editor.is_constant("pair"), editor.is_constant("x")) == (True, False)
    assert (editor.dims("pair"), editor.dims("two"), editor.dims("x")) == ((2,), (), None)
    assert [editor.scalar(name) for name in ("two", "three", "pair", "x")] == [2, 3, None, None]
    np.testing.assert_array_equal(editor.constant("pair"), [1, 2])
    assert editor.constant("x") is None


def test_a_constant_of_a_known_name_is_stored_once(model: onnx.ModelProto) -> None:
    editor = Editor(model)
    count = len(model.graph.initializer)
    assert editor.add_constant("new", np.array(5, dtype=np.int64)) == "new"
    assert editor.add_constant("new", np.array(5, dtype=np.int64)) == "new"
    assert (len(model.graph.initializer), editor.dims("new"), editor.scalar("new")) == (count + 1, (), 5)


def test_a_transposed_constant_is_stored_as_it_reads(model: onnx.ModelProto) -> None:
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3).T
    editor = Editor(model)
    editor.add_constant("matrix", matrix)
    np.testing.assert_array_equal(editor.constant("matrix"), matrix)


def test_what_nothing_needs_any_more_goes_with_its_constants(model: onnx.ModelProto) -> None:
    editor = Editor(model)
    editor.replace({"other": [helper.make_node("Neg", ["x"], ["other"])]})
    assert kinds(model) == ["Mul", "Add", "Neg"]
    assert [tensor.name for tensor in model.graph.initializer] == ["two"]
    assert [node.output[0] for node in editor.readers("x")] == ["doubled", "other"]
    onnx.checker.check_model(model)


def test_several_nodes_stand_where_one_stood(model: onnx.ModelProto) -> None:
    nodes = [helper.make_node("Neg", ["x"], ["less"]), helper.make_node("Abs", ["less"], ["doubled"])]
    Editor(model).replace({"doubled": nodes})
    assert kinds(model) == ["Neg", "Abs", "Add", "Add", "Add"]
    onnx.checker.check_model(model)


def test_the_graph_says_that_it_needs_operators_of_onnxruntime_only_if_it_does(model: onnx.ModelProto) -> None:
    editor = Editor(model)
    editor.replace({})
    assert [opset.domain for opset in model.opset_import] == [""]
    for name in ("out", "other"):
        editor.replace({name: [contrib_node("Gelu", ["doubled"], name)]})
    assert [opset.domain for opset in model.opset_import] == ["", CONTRIB]
    onnx.checker.check_model(model)


def test_what_only_a_branch_reads_is_needed() -> None:
    branches = {
        name: parser.parse_graph(f"{name} () => (float[n] y) {{ {line} }}")
        for name, line in (("then_branch", "y = Add(doubled, two)"), ("else_branch", "y = Neg(x)"))
    }
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18]> g (float[n] x, bool c) => (float[n] out) { doubled = Mul(x, two) }'
    )
    model.graph.node.append(helper.make_node("If", ["c"], ["out"], **branches))
    model.graph.initializer.append(numpy_helper.from_array(np.array(2, dtype=np.float32), "two"))
    editor = Editor(model)
    editor.replace({})
    assert kinds(model) == ["Mul", "If"]
    assert editor.readers("doubled") == [model.graph.node[1]]
    onnx.checker.check_model(model, full_check=True)


def test_attributes_come_by_name() -> None:
    node = contrib_node("MultiHeadAttention", ["q", "k"], "y", num_heads=2, scale=0.5)
    assert (node.domain, attributes(node)) == (CONTRIB, {"num_heads": 2, "scale": 0.5})
