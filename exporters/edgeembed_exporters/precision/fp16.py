"""Weights in half the bytes, computed with in float32, which processors without fp16 arithmetic have too."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from edgeembed_exporters.editing import Editor, looks_up_rows

# Smaller tensors (biases, norms) save nothing.
_SMALLEST = 4_096
_LARGEST = float(np.finfo(np.float16).max)


def halve_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give the graph with all large tensors stored as float16.

    Rows of a table are widened once they are looked up. Matrices are widened by a node that an engine runs once, when
    it loads the graph, if it folds constants; ours does for this precision.

    Args:
        model: The graph, in float32.

    Returns:
        A new graph with the same inputs and outputs.
    """
    halved = onnx.ModelProto()
    halved.CopyFrom(model)
    editor = Editor(halved)
    constants = {tensor.name: editor.constant(tensor.name) for tensor in halved.graph.initializer}
    large = {name: values for name, values in constants.items() if values is not None and _is_large(values)}
    replacements: dict[str, list[onnx.NodeProto]] = {}
    widened: set[str] = set()
    for node in halved.graph.node:
        chosen = {name: large[name] for name in node.input if name in large}
        if looks_up_rows(node) and node.input[0] in chosen:
            replacements[node.output[0]] = _look_up(editor, node, chosen[node.input[0]])
        elif chosen:
            casts = [_widen(editor, name, values) for name, values in chosen.items() if name not in widened]
            widened.update(chosen)
            replacements[node.output[0]] = [*casts, _reading(node, set(chosen))]
    editor.replace(replacements)
    return halved


def _is_large(values: npt.NDArray[Any]) -> bool:
    if values.dtype != np.float32 or values.size < _SMALLEST:
        return False
    return bool(np.abs(values).max() <= _LARGEST)


def _halve(editor: Editor, name: str, values: npt.NDArray[Any]) -> str:
    return editor.add_constant(f"{name}.fp16", values.astype(np.float16))


def _look_up(editor: Editor, node: onnx.NodeProto, table: npt.NDArray[Any]) -> list[onnx.NodeProto]:
    output = node.output[0]
    found = helper.make_node("Gather", [_halve(editor, node.input[0], table), node.input[1]], [f"{output}.fp16"])
    return [found, helper.make_node("Cast", [f"{output}.fp16"], [output], to=TensorProto.FLOAT)]


def _widen(editor: Editor, name: str, values: npt.NDArray[Any]) -> onnx.NodeProto:
    return helper.make_node("Cast", [_halve(editor, name, values)], [f"{name}.fp32"], to=TensorProto.FLOAT)


def _reading(node: onnx.NodeProto, widened: set[str]) -> onnx.NodeProto:
    reading = onnx.NodeProto()
    reading.CopyFrom(node)
    reading.input[:] = [f"{name}.fp32" if name in widened else name for name in node.input]
    return reading
