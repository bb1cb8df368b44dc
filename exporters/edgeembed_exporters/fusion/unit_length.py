"""x / |x| as one node."""

import onnx
from onnx import helper

from edgeembed_exporters.editing import Editor, attributes

_TINIEST = 1e-6


def fuse_unit_length(model: onnx.ModelProto) -> None:
    """Fuse, in place, every division of rows (batch, width) by their lengths; rows of zeros stay zeros.

    Args:
        model: The graph.
    """
    editor = Editor(model)
    found = {node.output[0]: rows for node in editor.graph.node if (rows := _divided(editor, node)) is not None}
    editor.replace(
        {
            output: [helper.make_node("LpNormalization", [rows], [output], axis=-1, p=2)]
            for output, rows in found.items()
        }
    )


def _divided(editor: Editor, node: onnx.NodeProto) -> str | None:
    """Give what a node divides by its length."""
    least = editor.maker(node.input[1]) if node.op_type == "Div" else None
    if least is None or least.op_type not in {"Clip", "Max"}:
        return None
    tiny, length = editor.scalar(least.input[1]), editor.maker(least.input[0])
    if tiny is None or not 0 <= tiny < _TINIEST or (len(least.input) > 2 and least.input[2]):
        return None
    if length is None or length.op_type != "ReduceL2" or length.input[0] != node.input[0]:
        return None
    axis = editor.scalar(length.input[1]) if len(length.input) > 1 else None
    return str(node.input[0]) if axis in {1, -1} and attributes(length).get("keepdims", 1) else None
