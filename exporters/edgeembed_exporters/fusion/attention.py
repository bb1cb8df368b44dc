"""Fuse softmax(scale * Q K^T + biases) V into one MultiHeadAttention node."""

from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import helper

from edgeembed_exporters.fusion.attention_bias import AttentionBiases
from edgeembed_exporters.onnx.graph import Graph, attributes, contrib_node

_PADDING_MASK = "fused.padding_mask"
_INT32 = onnx.TensorProto.INT32
# A constant below this is a mask: added to any attention score, it leaves an attention weight of 0 in float32.
_MASK_THRESHOLD = -1e30


@dataclass(frozen=True)
class _Scores:
    """Input of a softmax: `scale * query @ key^T` plus biases."""

    query: str
    key: str
    scale: float
    biases: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Projection:
    """Output of a linear layer (batch, tokens, heads * head size), and the factor that it is scaled by afterwards."""

    name: str
    heads: int
    scale: float


@dataclass(frozen=True)
class _Attention:
    """Names of the output (batch, tokens, width) and the inputs of an attention."""

    output: str
    query: str
    key: str
    value: str
    heads: int
    scale: float
    biases: tuple[str, ...]


def fuse_attention(model: onnx.ModelProto, max_seq_length: int) -> None:
    """Fuse, in place, every attention whose queries, keys and values are outputs of linear layers.

    Other attentions, for instance with rotary embeddings, are kept.

    Args:
        model: A model with the inputs input_ids and attention_mask.
        max_seq_length: Maximum number of tokens of the encoder.
    """
    _rewrite_masking_as_addition(model)
    graph = Graph(model)
    candidates = [_match_attention(graph, node) for node in graph.nodes if node.op_type == "Softmax"]
    matches = [match for match in candidates if match is not None]
    biases = AttentionBiases(model, sorted({bias for match in matches for bias in match.biases}), max_seq_length)
    replacements = {
        match.output: _fused_nodes(match, biases) for match in matches if biases.are_supported(match.biases)
    }
    if any(_PADDING_MASK in node.input for nodes in replacements.values() for node in nodes):
        first = graph.nodes[0]
        cast = helper.make_node("Cast", ["attention_mask"], [_PADDING_MASK], to=_INT32)
        replacements[first.output[0]] = [cast, first]
    graph.replace_nodes(replacements)


def _rewrite_masking_as_addition(model: onnx.ModelProto) -> None:
    """Rewrite, in place, `Where(hidden, -inf, scores)` before a softmax as `scores + Where(hidden, -inf, 0)`."""
    graph = Graph(model)
    replacements = {}
    for node in graph.nodes:
        masked_score = graph.scalar(node.input[1]) if node.op_type == "Where" else None
        if masked_score is None or masked_score >= _MASK_THRESHOLD:
            continue
        if graph.only_consumer(node.output[0], "Softmax") is not None:
            condition, lowest, scores = node.input
            output, zero = node.output[0], graph.add_initializer("fused.zero", np.array(0, dtype=np.float32))
            replacements[output] = [
                helper.make_node("Where", [condition, lowest, zero], [f"{output}.bias"]),
                helper.make_node("Add", [scores, f"{output}.bias"], [output]),
            ]
    graph.replace_nodes(replacements)


def _fused_nodes(attention: _Attention, biases: AttentionBiases) -> list[onnx.NodeProto]:
    """Return a MultiHeadAttention node, preceded by the nodes that add up all biases except padding masks."""
    padding_masks = [bias for bias in attention.biases if biases.is_padding_mask(bias)]
    others = [bias for bias in attention.biases if bias not in padding_masks]
    nodes, total = [], others[0] if others else ""
    for number, other in enumerate(others[1:], start=1):
        nodes.append(helper.make_node("Add", [total, other], [f"{attention.output}.bias{number}"]))
        total = f"{attention.output}.bias{number}"
    projection_bias = ""  # the linear layers add theirs
    key_padding_mask = _PADDING_MASK if padding_masks else ""
    inputs = [attention.query, attention.key, attention.value, projection_bias, key_padding_mask, total]
    while not inputs[-1]:
        inputs.pop()
    parameters = {"num_heads": attention.heads, "scale": attention.scale}
    return [*nodes, contrib_node("MultiHeadAttention", inputs, attention.output, **parameters)]


def _match_attention(graph: Graph, softmax: onnx.NodeProto) -> _Attention | None:
    scores = _match_scores(graph, softmax.input[0]) if attributes(softmax).get("axis", -1) in {-1, 3} else None
    context = graph.only_consumer(softmax.output[0], "MatMul")
    if scores is None or context is None or context.input[0] != softmax.output[0]:
        return None
    query, key, value = (_match_projection(graph, name) for name in (scores.query, scores.key, context.input[1]))
    transposed = graph.only_consumer(context.output[0], "Transpose")
    joined = transposed and graph.only_consumer(transposed.output[0], "Reshape")
    if query is None or key is None or value is None or transposed is None or joined is None:
        return None
    if list(attributes(transposed)["perm"]) != [0, 2, 1, 3] or len({query.heads, key.heads, value.heads}) > 1:
        return None
    scale = scores.scale * query.scale * key.scale
    if value.scale != 1 or scale <= 0:
        return None
    return _Attention(joined.output[0], query.name, key.name, value.name, query.heads, scale, scores.biases)


def _match_scores(graph: Graph, tensor: str) -> _Scores | None:
    """Match `query @ key`, followed by any number of scalings, then by any number of additions."""
    node = graph.producer(tensor)
    if node is None:
        return None
    if node.op_type == "MatMul" and not any(map(graph.is_initializer, node.input)):
        return _Scores(node.input[0], node.input[1], 1.0)
    if node.op_type in {"Mul", "Div"}:
        scores, factor = _match_scores(graph, node.input[0]), graph.scalar(node.input[1])
        if scores is None or not factor or scores.biases:
            return None
        return replace(scores, scale=scores.scale * (factor if node.op_type == "Mul" else 1 / factor))
    if node.op_type == "Add":
        for inner, bias in (node.input, node.input[::-1]):
            scores = _match_scores(graph, inner)
            if scores is not None:
                return replace(scores, biases=(*scores.biases, bias))
    return None


def _match_projection(graph: Graph, tensor: str) -> _Projection | None:
    """Follow a tensor (batch, heads, ...) back through scaling, Reshape and Transpose to its linear layer."""
    scale, head_size = 1.0, None
    while (node := graph.producer(tensor)) is not None:
        if node.op_type in {"Mul", "Div"} and (factor := graph.scalar(node.input[1])):
            scale *= factor if node.op_type == "Mul" else 1 / factor
        elif node.op_type == "Reshape":  # the one closest to the linear layer splits its output into heads
            head_size = _head_size(graph, node.input[1])
        elif node.op_type != "Transpose":
            break
        tensor = node.input[0]
    width = _linear_width(graph, tensor)
    if width is None or not head_size or width % head_size:
        return None
    return _Projection(tensor, width // head_size, scale)


def _head_size(graph: Graph, shape: str) -> int | None:
    """Return the last entry of a shape (batch, tokens, heads, head size), None unless it is constant."""
    values, node = graph.initializer(shape), graph.producer(shape)
    if values is None and node is not None and node.op_type == "Concat" and len(node.input) == 4:
        last = graph.scalar(node.input[3])
        return None if last is None else int(last)
    return int(values[3]) if values is not None and values.shape == (4,) else None


def _linear_width(graph: Graph, tensor: str) -> int | None:
    """Return the output width of the linear layer that produces a tensor, None if no linear layer does."""
    node = graph.producer(tensor)
    if node is not None and node.op_type == "Add":
        inner = [name for name in node.input if not graph.is_initializer(name)]
        node = graph.producer(inner[0]) if len(inner) == 1 else None
    if node is None or node.op_type != "MatMul":
        return None
    shape = graph.shape(node.input[1])
    return shape[1] if shape is not None and len(shape) == 2 else None
