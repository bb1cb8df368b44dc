"""Attentions and the int8 product that makes their queries, keys and values: one node, QAttention.

It computes what they did, but writes each head's rows where its product reads them: none are split and copied.
"""

from typing import NamedTuple

import onnx

from edgeembed_exporters.editing import Editor, attributes, contrib_node

_PADDING, _OTHER_BIAS = 4, 5
_BIAS = 6


class _Attention(NamedTuple):
    """An attention, what splits its queries, keys and values, and the product that makes them."""

    node: onnx.NodeProto
    split: onnx.NodeProto
    product: onnx.NodeProto


def join_attentions(model: onnx.ModelProto) -> None:
    """Join, in place, each attention with the int8 product of which it reads all three thirds, and nothing else does.

    Those with biases of their own, as MPNet's relative positions are, stay as they are.

    Args:
        model: The graph.
    """
    editor = Editor(model)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for attention, split, product in [found for node in editor.graph.node if (found := _find(editor, node))]:
        levels, weights, step, scales, zero, _, bias = product.input
        inputs = [levels, weights, bias, step, scales, _input(attention, _PADDING), zero]
        replacements[product.output[0]] = replacements[split.output[0]] = []
        joined = contrib_node("QAttention", inputs, attention.output[0], **attributes(attention))
        replacements[attention.output[0]] = [joined]
    editor.replace(replacements)


def _find(editor: Editor, node: onnx.NodeProto) -> _Attention | None:
    if node.op_type != "MultiHeadAttention" or _input(node, _OTHER_BIAS):
        return None
    split = editor.maker(node.input[0])
    if split is None or split.op_type != "Split" or list(split.output) != list(node.input[:3]):
        return None
    sizes, product = editor.constant(split.input[1]), editor.maker(split.input[0])
    if sizes is None or len(set(sizes.tolist())) > 1 or product is None or not _input(product, _BIAS):
        return None
    read = [editor.readers(name) for name in (*split.output, product.output[0])]
    is_joined = product.op_type == "MatMulIntegerToFloat" and all(len(readers) == 1 for readers in read)
    return _Attention(node, split, product) if is_joined else None


def _input(node: onnx.NodeProto, place: int) -> str:
    return str(node.input[place]) if len(node.input) > place else ""
