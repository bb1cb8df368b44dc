"""Int8 linear layers whose activations have a scale that calibration fixes (static quantization).

Static scales need fewer nodes than per-token scales, but the range of the activation must be known. It is for two
kinds of activations:

- Layer norm outputs. A normalized token has a known length, so each channel has a range: the one seen on calibration
  text, and at least three standard deviations, as given by the layer norm's weight and bias. Each channel is centered
  and scaled by a second layer norm with changed weight and bias. The shift is undone by the bias of the linear layer
  (Outlier Suppression+, Wei et al. 2023). `fusion.shared_norms` then derives the first layer norm from the second.
- Attention outputs. They are weighted means of the values, so they stay within the range of the values. Centering and
  scaling the output is the same as centering and scaling the values, which the linear layer of the values does at no
  cost.

Activations beyond the range are clipped.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.onnx.graph import Graph
from edgeembed_exporters.quantization.calibration import ActivationStatistics, Moment
from edgeembed_exporters.quantization.int8_matmul import QuantizedActivation, int8_matmul, smoothing_factors
from edgeembed_exporters.quantization.linear import Linear, LinearGroup

Array = npt.NDArray[np.float32]

_ZERO_POINT = 128
_ACTIVATION_MAX = 127  # above the zero point
_STANDARD_DEVIATIONS = 3
# The range of attention outputs, relative to calibration text: text in other languages exceeded a factor of 1.
_ATTENTION_MARGIN = 2.0
# SmoothQuant's alpha, 0.5 in the paper: GPTQ rounds the weights well, so more of the differences can move to them.
_ALPHA = 0.65
_MIN_SCALE = 1e-12


class LayerNorm(NamedTuple):
    """A LayerNormalization with constant parameters.

    Attributes:
        node: The node.
        weight: float32 (channels,).
        bias: float32 (channels,).
    """

    node: onnx.NodeProto
    weight: Array
    bias: Array

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of weight and bias, which layers may share."""
        return tuple(self.node.input[1:])


class CenteredActivation(NamedTuple):
    """An activation whose channels have been centered and smoothed.

    Attributes:
        scale: Its scale when quantized.
        moment: Its second moment on calibration text, float64 (channels, channels).
    """

    scale: float
    moment: Moment


@dataclass(frozen=True)
class CenteredAttentions:
    """Linear layers after the values of attentions have been centered.

    Attributes:
        groups: All linear layers; those that compute values or read attention outputs have new weights and biases.
        outputs: The attention outputs by name.
    """

    groups: tuple[LinearGroup, ...]
    outputs: dict[str, CenteredActivation]


def find_layer_norm(graph: Graph, group: LinearGroup) -> LayerNorm | None:
    """Return the layer norm that computes the activation of some linear layers, None if another node does."""
    node = graph.producer(group.activation)
    if node is None or node.op_type != "LayerNormalization" or node.output[0] != group.activation:
        return None
    weight = graph.initializer(node.input[1])
    bias = graph.initializer(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros_like(weight)
    if weight is None or bias is None or weight.shape != (len(group.weight),) or bias.shape != weight.shape:
        return None
    return LayerNorm(node, weight, bias)


def layer_norm_matmul(
    graph: Graph, group: LinearGroup, norm: LayerNorm, statistics: ActivationStatistics
) -> list[onnx.NodeProto]:
    """Return the nodes of linear layers whose activation is a layer norm output.

    Args:
        graph: The graph of the layers.
        group: The layers.
        norm: The layer norm before them.
        statistics: The activation on calibration text.
    """
    spread = _STANDARD_DEVIATIONS * np.abs(norm.weight)
    minimum = np.minimum(statistics.minimum, norm.bias - spread)
    maximum = np.maximum(statistics.maximum, norm.bias + spread)
    center, half_width = (maximum + minimum) / 2, (maximum - minimum) / 2
    factors = smoothing_factors(group.weight, half_width, _ALPHA)
    output, centered = group.output, f"{group.output}.centered"
    parameters = {
        "weight": (norm.weight / factors).astype(np.float32),
        "bias": ((norm.bias - center) / factors).astype(np.float32),
    }
    names = [graph.add_initializer(f"{centered}_{name}", values) for name, values in parameters.items()]
    center_norm = helper.make_node(norm.node.op_type, [norm.node.input[0], *names], [centered])
    center_norm.attribute.extend(norm.node.attribute)
    scale = float((half_width / factors).max() / _ACTIVATION_MAX)
    activation = CenteredActivation(scale, statistics.moment_after(center, factors))
    weight, bias = group.weight * factors[:, None], group.bias + center @ group.weight
    return [center_norm, *_quantize_and_multiply(graph, output, centered, activation, weight, bias)]


def center_attention_values(
    graph: Graph, groups: Sequence[LinearGroup], statistics: dict[str, ActivationStatistics]
) -> CenteredAttentions:
    """Center and scale the values of every attention whose output is read by linear layers alone.

    Args:
        graph: The graph.
        groups: All linear layers.
        statistics: The activations on calibration text, by name.
    """
    centered, outputs = list(groups), {}
    for index, group in enumerate(groups):
        found = _find_value_layer(graph, group, centered)
        if found is None:
            continue
        measured = statistics[group.activation]
        center = ((measured.maximum + measured.minimum) / 2).astype(np.float32)
        half_width = ((measured.maximum - measured.minimum) / 2).clip(min=_MIN_SCALE).astype(np.float32)
        factors = smoothing_factors(group.weight, half_width, _ALPHA)
        value_index, values = found
        weight, bias = values.weight / factors, (values.bias - center) / factors
        centered[value_index] = _with_parameters(centered[value_index], values, weight, bias)
        for layer in group.layers:
            weight, bias = layer.weight * factors[:, None], layer.bias + center @ layer.weight
            centered[index] = _with_parameters(centered[index], layer, weight, bias)
        scale = float((half_width / factors).max() * _ATTENTION_MARGIN / _ACTIVATION_MAX)
        outputs[group.activation] = CenteredActivation(scale, measured.moment_after(center, factors))
    return CenteredAttentions(tuple(centered), outputs)


def attention_matmul(graph: Graph, group: LinearGroup, activation: CenteredActivation) -> list[onnx.NodeProto]:
    """Return the nodes of linear layers whose activation is an attention output with centered values.

    Args:
        graph: The graph of the layers.
        group: The layers.
        activation: Their activation.
    """
    return _quantize_and_multiply(graph, group.output, group.activation, activation, group.weight, group.bias)


def _quantize_and_multiply(
    graph: Graph, output: str, name: str, activation: CenteredActivation, weight: Array, bias: Array
) -> list[onnx.NodeProto]:
    """Return a QuantizeLinear and a MatMulIntegerToFloat node."""
    scale = np.array(max(activation.scale, _MIN_SCALE), dtype=np.float32)
    quantized = QuantizedActivation(
        f"{name}.quantized", graph.add_initializer(f"{output}.scale", scale), _zero_point(graph)
    )
    return [
        helper.make_node("QuantizeLinear", [name, quantized.scale, quantized.zero_point], [quantized.name]),
        int8_matmul(graph, quantized, weight, name=output, output=output, bias=bias, moment=activation.moment),
    ]


def _zero_point(graph: Graph) -> str:
    return graph.add_initializer(f"int8.zero_point_{_ZERO_POINT}", np.array(_ZERO_POINT, dtype=np.uint8))


def _find_value_layer(graph: Graph, group: LinearGroup, groups: Sequence[LinearGroup]) -> tuple[int, Linear] | None:
    """Return the linear layer of the values of the attention before a group, and the index of that layer's group."""
    attention = graph.producer(group.activation)
    if attention is None or attention.op_type != "MultiHeadAttention":
        return None
    values = attention.input[2]
    if len(graph.consumers(group.activation)) != len(group.layers) or len(graph.consumers(values)) != 1:
        return None
    for index, other in enumerate(groups):
        for layer in other.layers:
            if layer.output == values and not _share_weights(graph, [layer, *group.layers]):
                return index, layer
    return None


def _share_weights(graph: Graph, layers: Sequence[Linear]) -> bool:
    """Return whether any of the layers shares its weight with another layer."""
    return any(len(graph.consumers(layer.node.input[1])) > 1 for layer in layers)


def _with_parameters(group: LinearGroup, layer: Linear, weight: Array, bias: Array) -> LinearGroup:
    """Return a group in which one layer has other parameters."""
    changed = replace(layer, weight=weight.astype(np.float32), bias=bias.astype(np.float32))
    return LinearGroup(tuple(changed if each.output == layer.output else each for each in group.layers))
