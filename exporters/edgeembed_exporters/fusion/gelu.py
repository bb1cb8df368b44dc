"""Fuse the exact GELU, x * (1 + erf(x / sqrt 2)) / 2, into one Gelu node."""

import math

import onnx

from edgeembed_exporters.onnx.graph import Graph, contrib_node, other_input

_HALF, _SQRT_2 = 0.5, math.sqrt(2)


def fuse_gelu(model: onnx.ModelProto) -> None:
    """Fuse, in place, every exact GELU, in whichever order its factors are multiplied.

    Args:
        model: The model.
    """
    graph = Graph(model)
    matches = [_match_gelu(graph, node) for node in graph.nodes if node.op_type == "Erf"]
    graph.replace_nodes({match[1]: [contrib_node("Gelu", [match[0]], match[1])] for match in matches if match})


def _match_gelu(graph: Graph, erf: onnx.NodeProto) -> tuple[str, str] | None:
    """Return the input and the output of the GELU around an Erf node."""
    x = _match_scaled_input(graph, erf.input[0])
    one_plus_erf = graph.only_consumer(erf.output[0], "Add")
    if x is None or one_plus_erf is None or graph.scalar(other_input(one_plus_erf, erf.output[0])) != 1:
        return None
    first = graph.only_consumer(one_plus_erf.output[0], "Mul")
    if first is None:
        return None
    factor = other_input(first, one_plus_erf.output[0])
    if _is_half_of(graph, factor, x):
        return x, first.output[0]
    second = graph.only_consumer(first.output[0], "Mul")
    if second is None:
        return None
    factors = factor, other_input(second, first.output[0])
    if any(name == x and graph.scalar(half) == _HALF for name, half in (factors, factors[::-1])):
        return x, second.output[0]
    return None


def _match_scaled_input(graph: Graph, tensor: str) -> str | None:
    """Return x of `x / sqrt 2`."""
    node = graph.producer(tensor)
    if node is None or node.op_type not in {"Div", "Mul"}:
        return None
    value = graph.scalar(node.input[1])
    expected = _SQRT_2 if node.op_type == "Div" else 1 / _SQRT_2
    return str(node.input[0]) if value is not None and math.isclose(value, expected, rel_tol=1e-5) else None


def _is_half_of(graph: Graph, tensor: str, x: str) -> bool:
    node = graph.producer(tensor)
    if node is None or node.op_type != "Mul" or x not in node.input:
        return False
    return graph.scalar(other_input(node, x)) == _HALF
