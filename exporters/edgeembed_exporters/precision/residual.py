"""Biases of products on the residual stream, which a layer normalisation can add for nothing."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

from edgeembed_exporters.editing import Editor


class _Bias(NamedTuple):
    """A bias that is added to a product, whose sum is only added to what a normalisation gives."""

    product: onnx.NodeProto
    added: onnx.NodeProto
    norm: onnx.NodeProto


def move_biases(model: onnx.ModelProto) -> None:
    """Let, in place, layer normalisations add the biases of products that are only added to what they give.

    Where a product reads such a normalisation the bias stays; those in int8 have one of their own (`normalised`).

    Args:
        model: The graph.
    """
    editor = Editor(model)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for product, added, norm in [found for node in editor.graph.node if (found := _find(editor, node)) is not None]:
        biases: list[Any] = [editor.constant(norm.input[2]), editor.constant(added.input[1])]
        moved = editor.add_constant(f"{norm.output[0]}.with_bias", (biases[0] + biases[1]).astype(np.float32))
        replacements[norm.output[0]] = [_with(norm, [*norm.input[:2], moved], norm.output[0])]
        replacements[product.output[0]] = [_with(product, product.input, added.output[0])]
        replacements[added.output[0]] = []
    editor.replace(replacements)


def _with(node: onnx.NodeProto, inputs: Sequence[str], output: str) -> onnx.NodeProto:
    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    changed.input[:], changed.output[:] = inputs, [output]
    return changed


def _find(editor: Editor, added: onnx.NodeProto) -> _Bias | None:
    """Give the bias that a node adds, if a normalisation can."""
    if added.op_type != "Add" or not editor.is_constant(added.input[1]):
        return None
    product, sums = editor.maker(added.input[0]), editor.readers(added.output[0])
    if [node.op_type for node in sums] != ["Add"]:
        return None
    norm = editor.maker(next((name for name in sums[0].input if name != added.output[0]), ""))
    if norm is None or norm.op_type != "LayerNormalization" or len(norm.input) < 3:
        return None
    if product is None or not all(_read_once(editor, node) for node in (product, added, norm)):
        return None
    same_size = editor.dims(norm.input[2]) == editor.dims(added.input[1])
    return _Bias(product, added, norm) if same_size else None


def _read_once(editor: Editor, node: onnx.NodeProto) -> bool:
    """Tell whether one node alone notices what this one gives."""
    is_output = node.output[0] in {output.name for output in editor.graph.output}
    return len(node.output) == 1 and not is_output and len(editor.readers(node.output[0])) == 1
