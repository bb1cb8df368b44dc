"""softmax(Q K^T + biases) V over heads as one node, MultiHeadAttention."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import helper

from edgeembed_exporters.editing import Editor, attributes, contrib_node
from edgeembed_exporters.fusion.masks import Masks

_PADDING = "fused.padding"
_INT32 = onnx.TensorProto.INT32
# Added to any score, what is lower leaves nothing of it.
_LOWEST = -1e30


@dataclass(frozen=True)
class _Scores:
    """What a softmax is taken of: `scale * queries @ keys^T`, plus biases."""

    queries: str
    keys: str
    scale: float
    biases: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Rows:
    """Vectors (batch, tokens, heads * head width), and what they were scaled by on their way to a product."""

    name: str
    heads: int
    scale: float


@dataclass(frozen=True)
class _Attention:
    """An attention's output (batch, tokens, width), and what it is made of."""

    output: str
    queries: str
    keys: str
    values: str
    heads: int
    scale: float
    biases: tuple[str, ...]


def fuse_attention(model: onnx.ModelProto, max_seq_length: int) -> None:
    """Fuse, in place, every attention of learned queries, keys and values; rotated ones, say, stay as they are.

    Args:
        model: The graph: input_ids and attention_mask in.
        max_seq_length: The most tokens that it takes.
    """
    _add_masks(model)
    editor = Editor(model)
    found = [each for node in editor.graph.node if node.op_type == "Softmax" for each in _attentions(editor, node)]
    masks = Masks(model, sorted({bias for each in found for bias in each.biases}), max_seq_length)
    replacements = {each.output: _fused(each, masks) for each in found if masks.are_known(each.biases)}
    if any(_PADDING in node.input for nodes in replacements.values() for node in nodes):
        first = editor.graph.node[0]
        cast = helper.make_node("Cast", ["attention_mask"], [_PADDING], to=_INT32)
        replacements[first.output[0]] = [cast, first]
    editor.replace(replacements)


def _add_masks(model: onnx.ModelProto) -> None:
    """Write, in place, scores that a mask overwrites with the lowest number as scores plus a bias."""
    editor = Editor(model)
    replacements = {}
    for node in editor.graph.node:
        lowest = editor.scalar(node.input[1]) if node.op_type == "Where" else None
        if lowest is not None and lowest < _LOWEST and editor.only_reader(node.output[0], "Softmax") is not None:
            condition, hidden, scores = node.input
            output, zero = node.output[0], editor.add_constant("fused.zero", np.array(0, dtype=np.float32))
            replacements[output] = [
                helper.make_node("Where", [condition, hidden, zero], [f"{output}.bias"]),
                helper.make_node("Add", [scores, f"{output}.bias"], [output]),
            ]
    editor.replace(replacements)


def _fused(each: _Attention, masks: Masks) -> list[onnx.NodeProto]:
    paddings = [bias for bias in each.biases if masks.is_padding(bias)]
    others = [bias for bias in each.biases if bias not in paddings]
    nodes, bias = [], ""
    for number, other in enumerate(others):
        if not number:
            bias = other
            continue
        nodes.append(helper.make_node("Add", [bias, other], [f"{each.output}.bias{number}"]))
        bias = f"{each.output}.bias{number}"
    inputs = [each.queries, each.keys, each.values, "", _PADDING if paddings else "", bias]
    while not inputs[-1]:
        inputs.pop()
    return [*nodes, contrib_node("MultiHeadAttention", inputs, each.output, num_heads=each.heads, scale=each.scale)]


def _attentions(editor: Editor, softmax: onnx.NodeProto) -> Iterator[_Attention]:
    scores = _scores(editor, softmax.input[0]) if attributes(softmax).get("axis", -1) in {-1, 3} else None
    product = editor.only_reader(softmax.output[0], "MatMul")
    if scores is None or product is None or product.input[0] != softmax.output[0]:
        return
    queries, keys, values = (_rows(editor, name) for name in (scores.queries, scores.keys, product.input[1]))
    transposed = editor.only_reader(product.output[0], "Transpose")
    joined = transposed and editor.only_reader(transposed.output[0], "Reshape")
    if queries is None or keys is None or values is None or transposed is None or joined is None:
        return
    if list(attributes(transposed)["perm"]) != [0, 2, 1, 3] or len({queries.heads, keys.heads, values.heads}) > 1:
        return
    scale = scores.scale * queries.scale * keys.scale
    if values.scale != 1 or scale <= 0:
        return
    names = queries.name, keys.name, values.name
    yield _Attention(joined.output[0], *names, queries.heads, scale, scores.biases)


def _scores(editor: Editor, tensor: str) -> _Scores | None:
    node = editor.maker(tensor)
    if node is None:
        return None
    if node.op_type == "MatMul" and not any(map(editor.is_constant, node.input)):
        return _Scores(node.input[0], node.input[1], 1.0)
    if node.op_type in {"Mul", "Div"}:
        scores, factor = _scores(editor, node.input[0]), editor.scalar(node.input[1])
        if scores is None or not factor or scores.biases:
            return None
        return replace(scores, scale=scores.scale * (factor if node.op_type == "Mul" else 1 / factor))
    if node.op_type == "Add":
        for inner, bias in (node.input, node.input[::-1]):
            scores = _scores(editor, inner)
            if scores is not None:
                return replace(scores, biases=(*scores.biases, bias))
    return None


def _rows(editor: Editor, tensor: str) -> _Rows | None:
    """Follow a tensor (batch, heads, ...) back over scaling and rearranging to the layer that made it."""
    scale, head_width = 1.0, None
    while (node := editor.maker(tensor)) is not None:
        if node.op_type in {"Mul", "Div"} and (factor := editor.scalar(node.input[1])):
            scale *= factor if node.op_type == "Mul" else 1 / factor
        elif node.op_type == "Reshape":  # the last that is met is the layer's own, which splits its output
            head_width = _head_width(editor, node.input[1])
        elif node.op_type != "Transpose":
            break
        tensor = node.input[0]
    width = _layer_width(editor, tensor)
    if width is None or not head_width or width % head_width:
        return None
    return _Rows(tensor, width // head_width, scale)


def _head_width(editor: Editor, shape: str) -> int | None:
    """Give the last of a shape's four sizes (batch, tokens, heads, head width), if it is constant."""
    values, node = editor.constant(shape), editor.maker(shape)
    if values is None and node is not None and node.op_type == "Concat" and len(node.input) == 4:
        last = editor.scalar(node.input[3])
        return None if last is None else int(last)
    return int(values[3]) if values is not None and values.shape == (4,) else None


def _layer_width(editor: Editor, tensor: str) -> int | None:
    """Give the columns of a product with a constant matrix, with or without a bias."""
    node = editor.maker(tensor)
    if node is not None and node.op_type == "Add":
        inner = [name for name in node.input if not editor.is_constant(name)]
        node = editor.maker(inner[0]) if len(inner) == 1 else None
    if node is None or node.op_type != "MatMul":
        return None
    dims = editor.dims(node.input[1])
    return dims[1] if dims is not None and len(dims) == 2 else None
