"""x * (1 + erf(x / sqrt 2)) / 2 as one node."""

import math
from collections.abc import Iterator

import onnx

from edgeembed_exporters.editing import Editor, contrib_node, other_input

_HALF, _ROOT = 0.5, math.sqrt(2)


def fuse_gelu(model: onnx.ModelProto) -> None:
    """Fuse, in place, every exact GELU, however its factors are ordered.

    Args:
        model: The graph.
    """
    editor = Editor(model)
    found = (found for node in editor.graph.node if node.op_type == "Erf" for found in _gelus(editor, node))
    editor.replace({output: [contrib_node("Gelu", [activation], output)] for output, activation in found})


def _gelus(editor: Editor, erf: onnx.NodeProto) -> Iterator[tuple[str, str]]:
    """Give the output and the input of the GELU that an error function is part of."""
    activation = _unscaled(editor, erf.input[0])
    plus_one = editor.only_reader(erf.output[0], "Add")
    if activation is None or plus_one is None or editor.scalar(other_input(plus_one, erf.output[0])) != 1:
        return
    first = editor.only_reader(plus_one.output[0], "Mul")
    if first is None:
        return
    factor = other_input(first, plus_one.output[0])
    if _is_half_of(editor, factor, activation):
        yield first.output[0], activation
        return
    second = editor.only_reader(first.output[0], "Mul")
    if second is None:
        return
    factors = factor, other_input(second, first.output[0])
    if any(name == activation and editor.scalar(half) == _HALF for name, half in (factors, factors[::-1])):
        yield second.output[0], activation


def _unscaled(editor: Editor, tensor: str) -> str | None:
    """Give x of x / sqrt 2."""
    node = editor.maker(tensor)
    if node is None or node.op_type not in {"Div", "Mul"}:
        return None
    value = editor.scalar(node.input[1])
    wanted = _ROOT if node.op_type == "Div" else 1 / _ROOT
    return str(node.input[0]) if value is not None and math.isclose(value, wanted, rel_tol=1e-5) else None


def _is_half_of(editor: Editor, tensor: str, activation: str) -> bool:
    node = editor.maker(tensor)
    if node is None or node.op_type != "Mul" or activation not in node.input:
        return False
    return editor.scalar(other_input(node, activation)) == _HALF
