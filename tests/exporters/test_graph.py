from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.onnx.graph import CONTRIB_DOMAIN, Graph, attributes, contrib_node
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


def op_types(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_producers_and_consumers_are_found(model: onnx.ModelProto) -> None:
    graph = Graph(model)
    assert graph.producer("doubled") == model.graph.node[0]
    assert graph.producer("x") is None
    assert graph.producer("two") is None
    assert [node.output[0] for node in graph.consumers("doubled")] == ["out", "more"]  # "out" reads it twice
    assert graph.consumers("out") == []


def test_initializers_have_values_and_shapes(model: onnx.ModelProto) -> None:
    graph = Graph(model)
    assert (graph.is_initializer("pair"), graph.is_initializer("x")) == (True, False)
    assert (graph.shape("pair"), graph.shape("two"), graph.shape("x")) == ((2,), (), None)
    assert [graph.scalar(name) for name in ("two", "three", "pair", "x")] == [2, 3, None, None]
    np.testing.assert_array_equal(graph.initializer("pair"), [1, 2])
    assert graph.initializer("x") is None


def test_equal_initializers_are_stored_once(model: onnx.ModelProto) -> None:
    graph = Graph(model)
    count = len(model.graph.initializer)
    assert graph.add_initializer("new", np.array(5, dtype=np.int64)) == "new"
    assert graph.add_initializer("new", np.array(5, dtype=np.int64)) == "new"
    assert (len(model.graph.initializer), graph.shape("new"), graph.scalar("new")) == (count + 1, (), 5)


def test_a_name_that_is_taken_by_other_values_is_changed(model: onnx.ModelProto) -> None:
    graph = Graph(model)
    name = graph.add_initializer("two", np.array(7, dtype=np.float32))
    assert name != "two"
    assert (graph.scalar("two"), graph.scalar(name)) == (2, 7)


def test_a_transposed_array_keeps_its_values(model: onnx.ModelProto) -> None:
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3).T
    graph = Graph(model)
    graph.add_initializer("matrix", matrix)
    np.testing.assert_array_equal(graph.initializer("matrix"), matrix)


def test_unused_nodes_and_initializers_are_removed(model: onnx.ModelProto) -> None:
    graph = Graph(model)
    graph.replace_nodes({"other": [helper.make_node("Neg", ["x"], ["other"])]})
    assert op_types(model) == ["Mul", "Add", "Neg"]
    assert [tensor.name for tensor in model.graph.initializer] == ["two"]
    assert [node.output[0] for node in graph.consumers("x")] == ["doubled", "other"]
    onnx.checker.check_model(model)


def test_one_node_can_be_replaced_by_several(model: onnx.ModelProto) -> None:
    nodes = [helper.make_node("Neg", ["x"], ["less"]), helper.make_node("Abs", ["less"], ["doubled"])]
    Graph(model).replace_nodes({"doubled": nodes})
    assert op_types(model) == ["Neg", "Abs", "Add", "Add", "Add"]
    onnx.checker.check_model(model)


def test_the_contrib_domain_is_declared_only_if_it_is_used(model: onnx.ModelProto) -> None:
    graph = Graph(model)
    graph.replace_nodes({})
    assert [opset.domain for opset in model.opset_import] == [""]
    for name in ("out", "other"):
        graph.replace_nodes({name: [contrib_node("Gelu", ["doubled"], name)]})
    assert [opset.domain for opset in model.opset_import] == ["", CONTRIB_DOMAIN]
    onnx.checker.check_model(model)


def test_nodes_that_only_a_subgraph_reads_are_kept() -> None:
    branches = {
        name: parser.parse_graph(f"{name} () => (float[n] y) {{ {line} }}")
        for name, line in (("then_branch", "y = Add(doubled, two)"), ("else_branch", "y = Neg(x)"))
    }
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18]> g (float[n] x, bool c) => (float[n] out) { doubled = Mul(x, two) }'
    )
    model.graph.node.append(helper.make_node("If", ["c"], ["out"], **branches))
    model.graph.initializer.append(numpy_helper.from_array(np.array(2, dtype=np.float32), "two"))
    graph = Graph(model)
    graph.replace_nodes({})
    assert op_types(model) == ["Mul", "If"]
    assert graph.consumers("doubled") == [model.graph.node[1]]
    onnx.checker.check_model(model, full_check=True)


def test_attributes_are_returned_by_name() -> None:
    node = contrib_node("MultiHeadAttention", ["q", "k"], "y", num_heads=2, scale=0.5)
    assert (node.domain, attributes(node)) == (CONTRIB_DOMAIN, {"num_heads": 2, "scale": 0.5})
