"""Float16 storage of weights; computation stays in float32, since many processors have no float16 arithmetic."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from edgeembed_exporters.onnx.graph import Graph, copy_model, is_row_gather

# Smaller tensors, for instance biases and layer norms, save no space worth a Cast node.
_MIN_ELEMENTS = 4_096
_FP16_MAX = float(np.finfo(np.float16).max)


def convert_to_fp16(model: onnx.ModelProto) -> onnx.ModelProto:
    """Store all large weights as float16.

    Rows of embedding tables are cast to float32 after they are looked up. Other weights are cast by a node that an
    engine with constant folding runs once, when it loads the model; the runtime turns folding on for this precision.

    Args:
        model: A float32 model; it is not changed.

    Returns:
        A new model with the same inputs and outputs.
    """
    converted = copy_model(model)
    graph = Graph(converted)
    weights = {name: graph.initializer(name) for name in graph.initializer_names}
    large = {name: values for name, values in weights.items() if values is not None and _is_convertible(values)}
    replacements: dict[str, list[onnx.NodeProto]] = {}
    already_cast: set[str] = set()
    for node in graph.nodes:
        read = {name: large[name] for name in node.input if name in large}
        if is_row_gather(node) and node.input[0] in read:
            replacements[node.output[0]] = _lookup(graph, node, read[node.input[0]])
        elif read:
            casts = [_cast(graph, name, values) for name, values in read.items() if name not in already_cast]
            already_cast.update(read)
            replacements[node.output[0]] = [*casts, _reading_casts(node, set(read))]
    graph.replace_nodes(replacements)
    return converted


def _is_convertible(values: npt.NDArray[Any]) -> bool:
    if values.dtype != np.float32 or values.size < _MIN_ELEMENTS:
        return False
    return bool(np.abs(values).max() <= _FP16_MAX)


def _store_fp16(graph: Graph, name: str, values: npt.NDArray[Any]) -> str:
    return graph.add_initializer(f"{name}.fp16", values.astype(np.float16))


def _lookup(graph: Graph, node: onnx.NodeProto, table: npt.NDArray[Any]) -> list[onnx.NodeProto]:
    output, stored = node.output[0], _store_fp16(graph, node.input[0], table)
    gather = helper.make_node("Gather", [stored, node.input[1]], [f"{output}.fp16"])
    return [gather, helper.make_node("Cast", [f"{output}.fp16"], [output], to=TensorProto.FLOAT)]


def _cast(graph: Graph, name: str, values: npt.NDArray[Any]) -> onnx.NodeProto:
    return helper.make_node("Cast", [_store_fp16(graph, name, values)], [f"{name}.fp32"], to=TensorProto.FLOAT)


def _reading_casts(node: onnx.NodeProto, names: set[str]) -> onnx.NodeProto:
    """Return a copy of a node that reads the float32 casts of some weights."""
    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    changed.input[:] = [f"{name}.fp32" if name in names else name for name in node.input]
    return changed
