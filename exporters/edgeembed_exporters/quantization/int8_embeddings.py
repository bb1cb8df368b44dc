"""Int8 linear layers whose activation is rows of a quantized embedding table, such as the projection of narrow rows.

The levels of the rows are the activation already quantized, so no rounding is added. Each row has a scale, which is
applied to the result.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.onnx.graph import Graph
from edgeembed_exporters.quantization.int8_matmul import QuantizedActivation, int8_matmul
from edgeembed_exporters.quantization.linear import LinearGroup

Array = npt.NDArray[np.float32]

_INT8_ZERO_POINT = 128
_INT8_LARGEST = 255
_INT4_ZERO_POINT = 8
_INT4_LARGEST = 15


class EmbeddingLevels(NamedTuple):
    """The lookup of an embedding's levels.

    Attributes:
        nodes: Nodes to add to the graph.
        activation: The levels of the rows.
        scales: Name of the scale of each looked-up row, float32 (..., 1).
    """

    nodes: list[onnx.NodeProto]
    activation: QuantizedActivation
    scales: str


def find_embedding_levels(graph: Graph, group: LinearGroup) -> EmbeddingLevels | None:
    """Return the lookup of the levels of rows that are the activation of some linear layers and of nothing else."""
    rows = graph.producer(group.activation)
    if rows is None or len(graph.consumers(group.activation)) > len(group.layers):
        return None
    if rows.op_type == "GatherBlockQuantized":
        return _int4_levels(graph, rows)
    return _int8_levels(graph, rows) if rows.op_type == "Mul" else None


def embedding_matmul(graph: Graph, group: LinearGroup, levels: EmbeddingLevels) -> list[onnx.NodeProto]:
    """Return the nodes of linear layers whose activation is rows of a quantized embedding table.

    Args:
        graph: The graph of the layers.
        group: The layers.
        levels: The lookup of the rows.
    """
    output = group.output
    unscaled = int8_matmul(graph, levels.activation, group.weight, name=output, output=f"{output}.unscaled")
    nodes = [*levels.nodes, unscaled]
    if not group.bias.any():
        return [*nodes, helper.make_node("Mul", [f"{output}.unscaled", levels.scales], [output])]
    bias = graph.add_initializer(f"{output}.bias", group.bias)
    return [
        *nodes,
        helper.make_node("Mul", [f"{output}.unscaled", levels.scales], [f"{output}.scaled"]),
        helper.make_node("Add", [f"{output}.scaled", bias], [output]),
    ]


def _int8_levels(graph: Graph, scaled: onnx.NodeProto) -> EmbeddingLevels | None:
    """Return the lookup in an int8 table (`embeddings.quantize_embeddings_int8`), whose levels become uint8."""
    cast = graph.producer(scaled.input[0])
    gather = graph.producer(cast.input[0]) if cast is not None and cast.op_type == "Cast" else None
    if gather is None or gather.op_type != "Gather" or graph.producer(scaled.input[1]) is None:
        return None
    name, ids = gather.input
    table = graph.initializer(name)
    if table is None or table.dtype != np.int8 or len(graph.consumers(name)) > 1:
        return None
    shifted = (np.asarray(table, dtype=np.int16) + _INT8_ZERO_POINT).astype(np.uint8)
    activation = _activation(graph, scaled.output[0], _INT8_ZERO_POINT, _INT8_LARGEST)
    lookup = helper.make_node("Gather", [graph.add_initializer(f"{name}.uint8", shifted), ids], [activation.name])
    return EmbeddingLevels([lookup], activation, scaled.input[1])


def _int4_levels(graph: Graph, rows: onnx.NodeProto) -> EmbeddingLevels | None:
    """Return the lookup in a table of 16 levels a row. A row divided by its scale is levels again, after rounding."""
    scales, output = graph.initializer(rows.input[2]), rows.output[0]
    if scales is None or scales.dtype != np.float32 or scales.shape[1:] != (1,):
        return None
    activation = _activation(graph, output, _INT4_ZERO_POINT, _INT4_LARGEST)
    nodes = [
        helper.make_node("Gather", [rows.input[2], rows.input[1]], [f"{output}.row_scales"]),
        helper.make_node("Div", [output, f"{output}.row_scales"], [f"{output}.levels"]),
        helper.make_node(
            "QuantizeLinear", [f"{output}.levels", activation.scale, activation.zero_point], [activation.name]
        ),
    ]
    return EmbeddingLevels(nodes, activation, f"{output}.row_scales")


def _activation(graph: Graph, name: str, zero_point: int, largest: int) -> QuantizedActivation:
    """Return the names of levels, whose scale is 1, since those of the rows are applied to the result."""
    one = graph.add_initializer("int8.one", np.array(1, dtype=np.float32))
    zero = graph.add_initializer(f"int8.zero_point_{zero_point}", np.array(zero_point, dtype=np.uint8))
    return QuantizedActivation(f"{name}.quantized", one, zero, largest)
