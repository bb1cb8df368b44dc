"""Int8 linear layers whose activations have a scale for each token, computed while the graph runs.

Source: ZeroQuant, Yao et al. 2022, section 4.1 (token-wise quantization). ONNX Runtime's dynamic quantization has one
scale for a whole batch instead, so that an embedding depends on the other texts of its batch.

- The zero point is in the middle, or lower for activation functions with few or no negative values.
- Channels are smoothed (SmoothQuant, Xiao et al. 2023), except after an attention, a GELU or a ReLU: their channels
  are alike, and smoothing made them slower without bringing them closer to the float32 model.
- After a GELU or a ReLU, a few channels can be an order of magnitude larger than all others, and would take the scale
  of a token, and that of the columns they have large weights in, for themselves. These outlier channels are multiplied
  in float32 (LLM.int8(), Dettmers et al. 2022, section 3.2). Their int8 weights are zero.
"""

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.onnx.graph import Graph
from edgeembed_exporters.quantization.calibration import ActivationStatistics, Moment
from edgeembed_exporters.quantization.int8_matmul import QuantizedActivation, int8_matmul, smoothing_factors
from edgeembed_exporters.quantization.linear import LinearGroup

Array = npt.NDArray[np.float32]
Channels = npt.NDArray[np.int64]

_ACTIVATION_MAX = 255
_ALPHA = 0.5  # SmoothQuant's default
# Zero points after activation functions, which are bounded below.
_ZERO_POINTS = {"Gelu": 28, "Relu": 0}
_DEFAULT_ZERO_POINT = 128
_GELU_MINIMUM = -0.17  # rounded down from -0.16997
_EVEN_CHANNELS = {*_ZERO_POINTS, "MultiHeadAttention"}
# A channel is an outlier if its maximum on calibration text is this many times that of 99 % of the channels.
_OUTLIER_RATIO = 2.0
_USUAL_SHARE = 0.99
_MAX_OUTLIERS = 16
# How far beyond calibration text the other channels may go before they are clipped.
_MARGIN = 1.5


def per_token_matmul(graph: Graph, group: LinearGroup, statistics: ActivationStatistics) -> list[onnx.NodeProto]:
    """Return the nodes of linear layers whose activation has a scale for each token.

    Args:
        graph: The graph of the layers.
        group: The layers.
        statistics: The activation on calibration text.
    """
    producer = graph.producer(group.activation)
    op_type = "" if producer is None else producer.op_type
    weight, moment, nodes, activation = group.weight, statistics.moment, [], group.activation
    if op_type not in _EVEN_CHANNELS:
        factors = smoothing_factors(weight, statistics.magnitude, _ALPHA)
        weight, smoothed = weight * factors[:, None], f"{activation}.smoothed"
        moment = statistics.moment_after(np.zeros_like(factors), factors)
        divisors = graph.add_initializer(f"{activation}.smoothing", 1 / factors)
        nodes = [helper.make_node("Mul", [activation, divisors], [smoothed])]
        activation = smoothed
    outliers = _find_outliers(statistics.maximum) if op_type in _ZERO_POINTS else np.array([], dtype=np.int64)
    zero_point = _ZERO_POINTS.get(op_type, _DEFAULT_ZERO_POINT)
    largest = float(np.delete(statistics.maximum, outliers).max()) * _MARGIN if len(outliers) else None
    nodes += _token_maximum(graph, group, activation, zero_point, largest)
    quantized = QuantizedActivation(f"{group.activation}.quantized", *_relative_parameters(graph, zero_point))
    nodes += _quantize(group, activation, quantized)
    return [*nodes, *_multiply(graph, group, quantized, weight, moment, outliers)]


def _find_outliers(maximum: Array) -> Channels:
    """Return the channels whose maximum is far above that of nearly all others, int64 (outliers,), in order."""
    threshold = _OUTLIER_RATIO * np.quantile(maximum, _USUAL_SHARE)
    descending = np.argsort(-maximum, kind="stable")[:_MAX_OUTLIERS]
    return np.sort(descending[maximum[descending] > threshold]).astype(np.int64)


def _relative_parameters(graph: Graph, zero_point: int) -> tuple[str, str]:
    """Return the names of scale and zero point of a token that is divided by its maximum."""
    scale = np.array(1 / (_ACTIVATION_MAX - zero_point), dtype=np.float32)
    return (
        graph.add_initializer(f"int8.scale_{zero_point}", scale),
        graph.add_initializer(f"int8.zero_point_{zero_point}", np.array(zero_point, dtype=np.uint8)),
    )


def _token_maximum(
    graph: Graph, group: LinearGroup, activation: str, zero_point: int, largest: float | None
) -> list[onnx.NodeProto]:
    """Return the nodes that compute the value (..., 1) that the largest quantized value of each token stands for.

    Args:
        graph: The graph of the layers.
        group: The layers.
        activation: The activation, smoothed or not.
        zero_point: Its zero point.
        largest: An upper bound of the value, since outliers do not count; None sets none.
    """
    node, name = helper.make_node, group.activation
    last_axis = graph.add_initializer("int8.last_axis", np.array([-1], dtype=np.int64))
    if zero_point == _DEFAULT_ZERO_POINT:
        absolute = node("Abs", [activation], [f"{name}.abs"])
        return [absolute, node("ReduceMax", [f"{name}.abs", last_axis], [f"{name}.token_max"], keepdims=1)]
    # However small the maximum of a token is, the quantized values below the zero point must reach GELU's minimum.
    least = -_GELU_MINIMUM * (_ACTIVATION_MAX - zero_point) / zero_point if zero_point else 0.0
    if not least and largest is None:
        return [node("ReduceMax", [activation, last_axis], [f"{name}.token_max"], keepdims=1)]
    bounds = [graph.add_initializer("int8.token_max_bound", np.array(least, dtype=np.float32))]
    if largest is not None:
        bounds.append(graph.add_initializer(f"{name}.largest", np.array(max(least, largest), dtype=np.float32)))
    return [
        node("ReduceMax", [activation, last_axis], [f"{name}.max"], keepdims=1),
        node("Max" if largest is None else "Clip", [f"{name}.max", *bounds], [f"{name}.token_max"]),
    ]


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


def _multiply(
    graph: Graph,
    group: LinearGroup,
    quantized: QuantizedActivation,
    weight: Array,
    moment: Moment,
    outliers: Channels,
) -> list[onnx.NodeProto]:
    """Return the nodes that multiply, apply the maximum of each token, and add outlier channels and bias."""
    node, output = helper.make_node, group.output
    bias = graph.add_initializer(f"{output}.bias", group.bias)
    if len(outliers):
        weight, moment = weight.copy(), moment.copy()
        weight[outliers] = moment[outliers] = moment[:, outliers] = 0
    nodes = [
        int8_matmul(graph, quantized, weight, name=output, output=f"{output}.unscaled", moment=moment),
        node("Mul", [f"{output}.unscaled", f"{group.activation}.token_max"], [f"{output}.scaled"]),
    ]
    if not len(outliers):
        return [*nodes, node("Add", [f"{output}.scaled", bias], [output])]
    channels = graph.add_initializer(f"{output}.outlier_channels", outliers)
    outlier_weight = graph.add_initializer(f"{output}.outlier_weight", group.weight[outliers])
    return [
        *nodes,
        node("Gather", [group.activation, channels], [f"{output}.outlier_values"], axis=-1),
        node("MatMul", [f"{output}.outlier_values", outlier_weight], [f"{output}.outliers"]),
        node("Add", [f"{output}.scaled", f"{output}.outliers"], [f"{output}.without_bias"]),
        node("Add", [f"{output}.without_bias", bias], [output]),
    ]
