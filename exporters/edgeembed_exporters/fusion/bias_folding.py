"""Fold the biases of residual branches into the bias of the layer norm before them.

In `LayerNorm(x) + (branch(...) + bias)` the layer norm can add the bias at no cost.
"""

from typing import Any, NamedTuple

import numpy as np
import onnx

from edgeembed_exporters.onnx.graph import Graph, copy_node


class _ResidualBias(NamedTuple):
    """A node `branch`, the node `add` that adds its bias, and the layer norm that the sum is added to."""

    branch: onnx.NodeProto
    add: onnx.NodeProto
    norm: onnx.NodeProto


def fold_biases(model: onnx.ModelProto) -> None:
    """Fold, in place, the bias of each residual branch into the bias of the layer norm that it is added to.

    A bias is kept if anything else reads the layer norm. The int8 matmuls after a layer norm do not: each has a layer
    norm of its own (`int8_static`).

    Args:
        model: The model.
    """
    graph = Graph(model)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for branch, add, norm in [match for node in graph.nodes if (match := _match_bias(graph, node)) is not None]:
        biases: list[Any] = [graph.initializer(norm.input[2]), graph.initializer(add.input[1])]
        folded = graph.add_initializer(f"{norm.output[0]}.folded_bias", (biases[0] + biases[1]).astype(np.float32))
        replacements[norm.output[0]] = [copy_node(norm, [*norm.input[:2], folded], norm.output[0])]
        replacements[branch.output[0]] = [copy_node(branch, branch.input, add.output[0])]
        replacements[add.output[0]] = []
    graph.replace_nodes(replacements)


def _match_bias(graph: Graph, add: onnx.NodeProto) -> _ResidualBias | None:
    if add.op_type != "Add" or not graph.is_initializer(add.input[1]):
        return None
    branch, consumers = graph.producer(add.input[0]), graph.consumers(add.output[0])
    if [node.op_type for node in consumers] != ["Add"]:
        return None
    norm = graph.producer(next((name for name in consumers[0].input if name != add.output[0]), ""))
    if norm is None or norm.op_type != "LayerNormalization" or len(norm.input) < 3:
        return None
    if branch is None or not all(graph.has_one_consumer(node) for node in (branch, add, norm)):
        return None
    same_shape = graph.shape(norm.input[2]) == graph.shape(add.input[1])
    return _ResidualBias(branch, add, norm) if same_shape else None
