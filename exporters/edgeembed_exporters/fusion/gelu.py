"""x * (1 + erf(x / sqrt 2)) / 2 as one node."""

import math
from collections.abc import Iterator

import onnx

from edgeembed_exporters.editing import Editor, contrib_node

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
    plus_one = _only_reader(editor, erf.output[0], "Add")
    if activation is None or plus_one is None or _other_scalar(editor, plus_one, erf.output[0]) != 1:
        return
    first = _only_reader(editor, plus_one.output[0], "Mul")
    if first is None:
        return
    factor = _other(first, plus_one.output[0])
    if _is_half_of(editor, factor, activation):
        yield first.output[0], activation
        return
    second = _only_reader(editor, first.output[0], "Mul")
    if second is None:
        return
    factors = factor, _other(second, first.output[0])
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
    return editor.scalar(_other(node, activation)) == _HALF


def _only_reader(editor: Editor, tensor: str, kind: str) -> onnx.NodeProto | None:
    readers = editor.readers(tensor)
    return readers[0] if len(readers) == 1 and readers[0].op_type == kind else None


def _other_scalar(editor: Editor, node: onnx.NodeProto, tensor: str) -> float | None:
    return editor.scalar(_other(node, tensor))


def _other(node: onnx.NodeProto, tensor: str) -> str:
    return str(node.input[1] if node.input[0] == tensor else node.input[0])
