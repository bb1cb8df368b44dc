"""Fuse the int8 projection of queries, keys and values with the attention into one QAttention node.

QAttention writes the queries, keys and values of each head where the attention reads them, which saves a Split and
three copies.
"""

from typing import NamedTuple

import onnx

from edgeembed_exporters.onnx.graph import Graph, attributes, contrib_node

# Positions of inputs of MultiHeadAttention and of MatMulIntegerToFloat.
_PADDING_MASK, _ATTENTION_BIAS = 4, 5
_PROJECTION_BIAS = 6


class _Int8Attention(NamedTuple):
    """An attention, the Split into queries, keys and values, and the int8 matmul that projects all three."""

    attention: onnx.NodeProto
    split: onnx.NodeProto
    projection: onnx.NodeProto


def fuse_qattention(model: onnx.ModelProto) -> None:
    """Fuse, in place, each attention with the int8 matmul of its queries, keys and values.

    Attentions with a bias, for instance MPNet's relative positions, are kept: QAttention takes none.

    Args:
        model: A model at int8.
    """
    graph = Graph(model)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for attention, split, projection in [match for node in graph.nodes if (match := _match(graph, node))]:
        activation, weight, scale, weight_scales, zero_point, _, bias = projection.input
        inputs = [activation, weight, bias, scale, weight_scales, _input(attention, _PADDING_MASK), zero_point]
        replacements[projection.output[0]] = replacements[split.output[0]] = []
        fused = contrib_node("QAttention", inputs, attention.output[0], **attributes(attention))
        replacements[attention.output[0]] = [fused]
    graph.replace_nodes(replacements)


def _match(graph: Graph, node: onnx.NodeProto) -> _Int8Attention | None:
    if node.op_type != "MultiHeadAttention" or _input(node, _ATTENTION_BIAS):
        return None
    split = graph.producer(node.input[0])
    if split is None or split.op_type != "Split" or list(split.output) != list(node.input[:3]):
        return None
    sizes, projection = graph.initializer(split.input[1]), graph.producer(split.input[0])
    if sizes is None or len(set(sizes.tolist())) > 1:
        return None
    if projection is None or projection.op_type != "MatMulIntegerToFloat" or not _input(projection, _PROJECTION_BIAS):
        return None
    tensors = (*split.output, projection.output[0])
    is_private = all(len(graph.consumers(name)) == 1 for name in tensors)
    return _Int8Attention(node, split, projection) if is_private else None


def _input(node: onnx.NodeProto, position: int) -> str:
    """Return an optional input of a node, an empty string if it is not given."""
    return str(node.input[position]) if len(node.input) > position else ""
