"""fp16: float16 storage of weights; computation stays in float32, since many processors have no float16 arithmetic."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from edgeembed_exporters.onnx.graph import Graph, copy_model, copy_node, is_row_gather
from edgeembed_exporters.precision import PRECISIONS, Precision

# Smaller tensors, for instance biases and layer norms, save no space worth a Cast node.
_MIN_ELEMENTS = 4_096
_FP16_MAX = float(np.finfo(np.float16).max)


@PRECISIONS.register("fp16")
class Fp16(Precision):
    """Weights in float16.

    It differs little more than fp32: rank correlation and overlap of all-MiniLM-L6-v2 measured 1.0. A six-layer
    classifier of TREC's questions measured a label agreement of 1.0, and 0.0017 as the largest difference of a
    probability.
    """

    help = "has half the size"
    file = "onnx/model_fp16.onnx"
    bits = 16
    calibrates = False
    min_cosine = 0.999
    min_rank = 0.99
    min_overlap = 0.95
    min_label_agreement = 0.98
    max_probability_difference = 0.05

    @staticmethod
    def quantize(model: onnx.ModelProto, token_ids: Sequence[list[int]]) -> onnx.ModelProto:  # noqa: ARG004
        """Store all large weights as float16."""
        return convert_to_fp16(model)

    @staticmethod
    def pack(matrix: npt.NDArray[np.float32]) -> tuple[npt.NDArray[Any], None]:
        """Return the matrix in float16."""
        return matrix.astype(np.float16), None


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
    return copy_node(node, [f"{name}.fp32" if name in names else name for name in node.input])
