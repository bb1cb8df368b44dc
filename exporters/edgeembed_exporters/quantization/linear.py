"""Linear layers of a graph: MatMuls with a constant weight, grouped by the activation that they share."""

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.onnx.graph import Graph, attributes
from edgeembed_exporters.quantization.calibration import ActivationStatistics


@dataclass(frozen=True)
class Linear:
    """A MatMul of an activation with a constant weight, and the bias that is added to it.

    Attributes:
        node: The MatMul.
        weight: float32 (channels, columns).
        bias: float32 (columns,); zeros if none is added.
        output: Name of the result, bias included.
    """

    node: onnx.NodeProto
    weight: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]
    output: str

    @property
    def activation(self) -> str:
        """The name of the input (..., channels)."""
        return str(self.node.input[0])


@dataclass(frozen=True)
class LinearGroup:
    """All linear layers of one activation, for instance those of queries, keys and values.

    They are computed by one matmul, so that the activation is read and quantized once.

    Attributes:
        layers: One or more.
    """

    layers: tuple[Linear, ...]

    @property
    def activation(self) -> str:
        """The name of the input (..., channels)."""
        return self.layers[0].activation

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The names of the weights. Groups with equal names share their weights."""
        return tuple(str(layer.node.input[1]) for layer in self.layers)

    @property
    def weight(self) -> npt.NDArray[np.float32]:
        """The weights side by side, (channels, columns of all layers)."""
        return np.concatenate([layer.weight for layer in self.layers], axis=1)

    @property
    def bias(self) -> npt.NDArray[np.float32]:
        """The biases one after the other."""
        return np.concatenate([layer.bias for layer in self.layers])

    @property
    def output(self) -> str:
        """The name of the result of the common matmul."""
        return self.layers[0].output if len(self.layers) == 1 else f"{self.layers[0].output}.concatenated"

    def replacements(self, graph: Graph, nodes: list[onnx.NodeProto]) -> dict[str, list[onnx.NodeProto]]:
        """Return what `Graph.replace_nodes` needs to replace the layers by a common matmul.

        Args:
            graph: The graph of the layers.
            nodes: The nodes that compute `output`.
        """
        if len(self.layers) > 1:
            sizes = np.array([len(layer.bias) for layer in self.layers], dtype=np.int64)
            inputs = [self.output, graph.add_initializer(f"{self.output}.split_sizes", sizes)]
            nodes = [*nodes, helper.make_node("Split", inputs, [layer.output for layer in self.layers], axis=-1)]
        removed: dict[str, list[onnx.NodeProto]] = {layer.output: [] for layer in self.layers}
        return removed | {self.layers[0].node.output[0]: nodes}


def find_linear_groups(graph: Graph) -> list[LinearGroup]:
    """Return all MatMuls with a constant weight of two dimensions, grouped by activation."""
    groups: dict[str, list[Linear]] = {}
    for node in graph.nodes:
        weight = graph.initializer(node.input[1]) if node.op_type == "MatMul" else None
        if weight is not None and weight.ndim == 2:
            groups.setdefault(node.input[0], []).append(_with_bias(graph, node, weight))
    return [LinearGroup(tuple(layers)) for layers in groups.values()]


def combine_over_shared_weights(
    groups: Iterable[LinearGroup], statistics: dict[str, ActivationStatistics]
) -> dict[str, ActivationStatistics]:
    """Combine the calibration statistics of all activations that are multiplied with the same weights.

    Layers that share weights, as ALBERT's do, then share the quantized weights too.

    Args:
        groups: All linear layers.
        statistics: Statistics by the name of the activation.

    Returns:
        The combined statistics by the name of the activation.
    """
    activations: dict[tuple[str, ...], list[str]] = {}
    for group in groups:
        activations.setdefault(group.weight_names, []).append(group.activation)
    combined = {}
    for names in activations.values():
        combined.update(dict.fromkeys(names, functools.reduce(operator.add, (statistics[name] for name in names))))
    return combined


def split_gemms(model: onnx.ModelProto) -> None:
    """Replace, in place, each Gemm with a constant weight, which torch exports for Dense, by MatMul and Add."""
    graph = Graph(model)
    graph.replace_nodes({node.output[0]: _split(graph, node) for node in graph.nodes if _is_linear_gemm(graph, node)})


def _with_bias(graph: Graph, node: onnx.NodeProto, weight: npt.NDArray[np.float32]) -> Linear:
    consumers, output = graph.consumers(node.output[0]), node.output[0]
    if len(consumers) == 1 and consumers[0].op_type == "Add":
        first, second = consumers[0].input
        bias = graph.initializer(second if first == output else first)
        if bias is not None and bias.shape == weight.shape[1:]:
            return Linear(node, weight, bias, consumers[0].output[0])
    return Linear(node, weight, np.zeros(weight.shape[1], dtype=np.float32), output)


def _is_linear_gemm(graph: Graph, node: onnx.NodeProto) -> bool:
    if node.op_type != "Gemm" or not graph.is_initializer(node.input[1]):
        return False
    given = attributes(node)
    return given.get("alpha", 1) == 1 and given.get("beta", 1) == 1 and not given.get("transA", 0)


def _split(graph: Graph, node: onnx.NodeProto) -> list[onnx.NodeProto]:
    output, weight = node.output[0], graph.initializer(node.input[1])
    if weight is None:
        return [node]
    stored = graph.add_initializer(f"{output}.gemm_weight", weight.T if attributes(node).get("transB", 0) else weight)
    if len(node.input) < 3:
        return [helper.make_node("MatMul", [node.input[0], stored], [output])]
    return [
        helper.make_node("MatMul", [node.input[0], stored], [f"{output}.matmul"]),
        helper.make_node("Add", [f"{output}.matmul", node.input[2]], [output]),
    ]
