"""Compute one layer norm instead of two on the same input.

Int8 linear layers after a layer norm read a second layer norm of the same input, centered and scaled channel by channel
(`quantization.int8_static`). The residual branch needs the first one, which is `factor * second + shift`. A Mul takes a
third of the time of a layer norm, and the bias of the matmul that the residual is added to takes the shift at no cost
(docs/results/roofline.json).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.onnx.graph import Graph, copy_node, other_input

Array = npt.NDArray[np.float32]

_BIAS_INPUT = 6  # of a MatMulIntegerToFloat


class _Twins(NamedTuple):
    """Two layer norms of one input, and the node that adds the first one to a branch."""

    norm: onnx.NodeProto
    centered: onnx.NodeProto
    add: onnx.NodeProto


def share_norms(model: onnx.ModelProto) -> None:
    """Derive, in place, each layer norm of a residual branch from the one that int8 linear layers read.

    A layer norm is kept if anything but one Add reads it.

    Args:
        model: An int8 model.
    """
    graph = Graph(model)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for twins in [found for node in graph.nodes if (found := _find_twins(graph, node)) is not None]:
        factor, shift = _factor_and_shift(graph, twins)
        norm, centered = twins.norm.output[0], twins.centered.output[0]
        name = graph.add_initializer(f"{norm}.factor", factor)
        branch = graph.producer(other_input(twins.add, norm))
        if branch is not None and branch.op_type == "MatMulIntegerToFloat" and graph.has_one_consumer(branch):
            replacements[branch.output[0]] = [_with_bias(graph, branch, shift)]
            residual = [helper.make_node("Mul", [centered, name], [norm])]
        else:
            shift_name = graph.add_initializer(f"{norm}.shift", shift)
            scaled = helper.make_node("Mul", [centered, name], [f"{norm}.scaled"])
            residual = [scaled, helper.make_node("Add", [f"{norm}.scaled", shift_name], [norm])]
        replacements[norm] = []
        replacements[centered] = [twins.centered, *residual]
    graph.replace_nodes(replacements)


def _find_twins(graph: Graph, norm: onnx.NodeProto) -> _Twins | None:
    add = graph.only_consumer(norm.output[0], "Add") if _is_constant_norm(graph, norm) else None
    if add is None or graph.is_output(norm.output[0]):
        return None
    for node in graph.consumers(norm.input[0]):
        is_twin = node.output[0] != norm.output[0] and _is_constant_norm(graph, node)
        if is_twin and node.attribute == norm.attribute and graph.only_consumer(node.output[0], "QuantizeLinear"):
            return _Twins(norm, node, add) if _is_before(graph, node, add) else None
    return None


def _is_constant_norm(graph: Graph, node: onnx.NodeProto) -> bool:
    if node.op_type != "LayerNormalization" or len(node.input) != 3:
        return False
    return all(graph.is_initializer(name) for name in node.input[1:])


def _is_before(graph: Graph, node: onnx.NodeProto, other: onnx.NodeProto) -> bool:
    outputs = [each.output[0] for each in graph.nodes]
    return outputs.index(node.output[0]) < outputs.index(other.output[0])


def _factor_and_shift(graph: Graph, twins: _Twins) -> tuple[Array, Array]:
    """Return factor and shift with `norm = factor * centered + shift`, float32 (channels,)."""
    names: list[Any] = [*twins.norm.input[1:], *twins.centered.input[1:]]
    weight, bias, centered_weight, centered_bias = (np.asarray(graph.initializer(name)) for name in names)
    # A channel of weight 0 is constant in both.
    factor = np.divide(weight, centered_weight, out=np.ones_like(weight), where=centered_weight != 0)
    return factor, bias - factor * centered_bias


def _with_bias(graph: Graph, matmul: onnx.NodeProto, shift: Array) -> onnx.NodeProto:
    """Return a MatMulIntegerToFloat whose bias has a shift added to it."""
    inputs = [*matmul.input, *[""] * (_BIAS_INPUT + 1 - len(matmul.input))]
    bias = graph.initializer(inputs[_BIAS_INPUT])
    shifted = shift if bias is None else np.asarray(bias + shift, dtype=np.float32)
    inputs[_BIAS_INPUT] = graph.add_initializer(f"{matmul.output[0]}.shifted_bias", shifted)
    return copy_node(matmul, inputs)
