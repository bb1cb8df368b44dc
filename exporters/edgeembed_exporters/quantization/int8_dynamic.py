"""Int8 linear layers whose activations have a scale for each token, computed while the graph runs.

Source: ZeroQuant, Yao et al. 2022, section 4.1 (token-wise quantization). ONNX Runtime's dynamic quantization has one
scale for a whole batch instead, so that an embedding depends on the other texts of its batch.

- Activations are 0 to 180, weights -91 to 91: 2 * 180 * 91 = 32,760 < 2**15 (see `int8_matmul` on saturation).
- The zero point is 90, or lower for activation functions with few or no negative values.
- Channels are smoothed (SmoothQuant, Xiao et al. 2023), except after an attention, a GELU or a ReLU: their channels
  are alike, and smoothing made them slower without bringing them closer to the float32 model.
"""

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.onnx.graph import Graph
from edgeembed_exporters.quantization.int8_matmul import QuantizedActivation, int8_matmul, smoothing_factors
from edgeembed_exporters.quantization.linear import LinearGroup

Array = npt.NDArray[np.float32]

_ACTIVATION_MAX = 180
_WEIGHT_MAX = 91
_ALPHA = 0.5  # SmoothQuant's default
# Zero points after activation functions, which are bounded below.
_ZERO_POINTS = {"Gelu": 20, "Relu": 0}
_DEFAULT_ZERO_POINT = _ACTIVATION_MAX // 2
_GELU_MINIMUM = -0.17  # rounded down from -0.16997
_EVEN_CHANNELS = {*_ZERO_POINTS, "MultiHeadAttention"}


def per_token_matmul(graph: Graph, group: LinearGroup, ranges: Array) -> list[onnx.NodeProto]:
    """Return the nodes of linear layers whose activation has a scale for each token.

    Args:
        graph: The graph of the layers.
        group: The layers.
        ranges: Negated minimum and maximum of each channel of the activation, float32 (2, channels).
    """
    producer = graph.producer(group.activation)
    op_type = "" if producer is None else producer.op_type
    weight, nodes, activation = group.weight, [], group.activation
    if op_type not in _EVEN_CHANNELS:
        factors = smoothing_factors(weight, ranges.max(axis=0), _ALPHA)
        weight, smoothed = weight * factors[:, None], f"{activation}.smoothed"
        divisors = graph.add_initializer(f"{activation}.smoothing", 1 / factors)
        nodes = [helper.make_node("Mul", [activation, divisors], [smoothed])]
        activation = smoothed
    zero_point = _ZERO_POINTS.get(op_type, _DEFAULT_ZERO_POINT)
    nodes += _token_maximum(graph, group, activation, zero_point)
    quantized = QuantizedActivation(f"{group.activation}.quantized", *_relative_parameters(graph, zero_point))
    nodes += _quantize(group, activation, quantized)
    return [*nodes, *_multiply(graph, group, quantized, weight)]


def _relative_parameters(graph: Graph, zero_point: int) -> tuple[str, str]:
    """Return the names of scale and zero point of a token that is divided by its maximum."""
    scale = np.array(1 / (_ACTIVATION_MAX - zero_point), dtype=np.float32)
    return (
        graph.add_initializer(f"int8.scale_{zero_point}", scale),
        graph.add_initializer(f"int8.zero_point_{zero_point}", np.array(zero_point, dtype=np.uint8)),
    )


def _token_maximum(graph: Graph, group: LinearGroup, activation: str, zero_point: int) -> list[onnx.NodeProto]:
    """Return the nodes that compute the value (..., 1) that the largest quantized value of each token stands for."""
    node, name = helper.make_node, group.activation
    last_axis = graph.add_initializer("int8.last_axis", np.array([-1], dtype=np.int64))
    if zero_point == _DEFAULT_ZERO_POINT:
        absolute = node("Abs", [activation], [f"{name}.abs"])
        return [absolute, node("ReduceMax", [f"{name}.abs", last_axis], [f"{name}.token_max"], keepdims=1)]
    if zero_point == 0:
        return [node("ReduceMax", [activation, last_axis], [f"{name}.token_max"], keepdims=1)]
    # However small the maximum of a token is, the quantized values below the zero point must reach GELU's minimum.
    lower_bound = np.array(-_GELU_MINIMUM * (_ACTIVATION_MAX - zero_point) / zero_point, dtype=np.float32)
    bound = graph.add_initializer("int8.gelu_token_max_bound", lower_bound)
    largest = node("ReduceMax", [activation, last_axis], [f"{name}.max"], keepdims=1)
    return [largest, node("Max", [f"{name}.max", bound], [f"{name}.token_max"])]


def _quantize(group: LinearGroup, activation: str, quantized: QuantizedActivation) -> list[onnx.NodeProto]:
    """Return the nodes that quantize an activation.

    In a token of zeros, 0 / 0 becomes an arbitrary value, which is later multiplied by the token's maximum, 0.
    """
    name = group.activation
    return [
        helper.make_node("Div", [activation, f"{name}.token_max"], [f"{name}.relative"]),
        helper.make_node(
            "QuantizeLinear", [f"{name}.relative", quantized.scale, quantized.zero_point], [quantized.name]
        ),
    ]


def _multiply(graph: Graph, group: LinearGroup, quantized: QuantizedActivation, weight: Array) -> list[onnx.NodeProto]:
    """Return the nodes that multiply, apply the maximum of each token, and add the bias."""
    output = group.output
    bias = graph.add_initializer(f"{output}.bias", group.bias)
    return [
        int8_matmul(graph, quantized, weight, _WEIGHT_MAX, name=output, output=f"{output}.unscaled"),
        helper.make_node("Mul", [f"{output}.unscaled", f"{group.activation}.token_max"], [f"{output}.scaled"]),
        helper.make_node("Add", [f"{output}.scaled", bias], [output]),
    ]
