"""Fuse x / max(|x|, epsilon) into one LpNormalization node."""

import onnx
from onnx import helper

from edgeembed_exporters.onnx.graph import Graph, attributes

_MAX_EPSILON = 1e-6


def fuse_l2_norm(model: onnx.ModelProto) -> None:
    """Fuse, in place, every L2 normalization of rows (batch, width); zero rows stay zero.

    Args:
        model: The model.
    """
    graph = Graph(model)
    inputs = {node.output[0]: x for node in graph.nodes if (x := _match_l2_norm(graph, node)) is not None}
    graph.replace_nodes(
        {output: [helper.make_node("LpNormalization", [x], [output], axis=-1, p=2)] for output, x in inputs.items()}
    )


def _match_l2_norm(graph: Graph, node: onnx.NodeProto) -> str | None:
    """Return x of `x / max(|x|, epsilon)`."""
    clipped = graph.producer(node.input[1]) if node.op_type == "Div" else None
    if clipped is None or clipped.op_type not in {"Clip", "Max"}:
        return None
    epsilon, norm = graph.scalar(clipped.input[1]), graph.producer(clipped.input[0])
    has_maximum = len(clipped.input) > 2 and clipped.input[2]
    if epsilon is None or not 0 <= epsilon < _MAX_EPSILON or has_maximum:
        return None
    if norm is None or norm.op_type != "ReduceL2" or norm.input[0] != node.input[0]:
        return None
    axis = graph.scalar(norm.input[1]) if len(norm.input) > 1 else None
    return str(node.input[0]) if axis in {1, -1} and attributes(norm).get("keepdims", 1) else None
