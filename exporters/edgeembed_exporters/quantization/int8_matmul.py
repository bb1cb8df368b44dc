"""Parts of an int8 matmul: per-channel rounding of weights, smoothing of activations, the operator.

Saturation: processors with AVX2 but without VNNI multiply uint8 activations by int8 weights with VPMADDUBSW, which adds
two adjacent products in int16 and saturates. With 8 bits each, a pair can reach 2 * 255 * 127, twice the range of
int16. Therefore `2 * activation_max * weight_max < 2**15` wherever this module is used. The activation counts from 0
there, since the zero point is subtracted after the multiplication.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnx

from edgeembed_exporters.onnx.graph import Graph, contrib_node

Array = npt.NDArray[np.float32]

_MIN_MAGNITUDE = 1e-5  # keeps channels of zeros from a factor of zero
_MIN_COLUMN_MAX = 1e-12


class QuantizedActivation(NamedTuple):
    """Names of a quantized activation and its parameters.

    Attributes:
        name: uint8 (..., channels).
        scale: A float32 scalar.
        zero_point: A uint8 scalar.
    """

    name: str
    scale: str
    zero_point: str


def int8_matmul(
    graph: Graph,
    activation: QuantizedActivation,
    weight: Array,
    weight_max: int,
    *,
    name: str,
    output: str,
    bias: Array | None = None,
) -> onnx.NodeProto:
    """Return a MatMulIntegerToFloat node, and add its initializers to the graph.

    Args:
        graph: The graph that the node is for.
        activation: The first factor.
        weight: float32 (channels, columns), to be rounded per channel.
        weight_max: Largest magnitude of a rounded weight.
        name: Prefix for the names of initializers.
        output: Name of the result, float32 (..., columns).
        bias: float32 (columns,), added to the result; None adds nothing.
    """
    rounded, weight_scales = round_per_channel(weight, weight_max)
    inputs = [
        activation.name,
        graph.add_initializer(f"{name}.weight", rounded),
        activation.scale,
        graph.add_initializer(f"{name}.weight_scales", weight_scales),
        activation.zero_point,
    ]
    if bias is not None:
        no_weight_zero_point = ""
        inputs += [no_weight_zero_point, graph.add_initializer(f"{name}.bias", bias.astype(np.float32))]
    return contrib_node("MatMulIntegerToFloat", inputs, output)


def round_per_channel(weight: Array, weight_max: int) -> tuple[npt.NDArray[np.int8], Array]:
    """Round weights to integers with one scale for each output channel.

    Args:
        weight: float32 (channels, columns).
        weight_max: The integer that the largest magnitude of a column is rounded to.

    Returns:
        The rounded weights, int8 (channels, columns), and their scales, float32 (columns,).
    """
    scales: Array = np.maximum(np.abs(weight).max(axis=0), np.float32(_MIN_COLUMN_MAX)) / np.float32(weight_max)
    return np.rint(weight / scales).astype(np.int8), scales


def smoothing_factors(weight: Array, activation_max: Array, alpha: float) -> Array:
    """Return the factors that activations are divided by and weights are multiplied by (SmoothQuant).

    The factors even out the channels of an activation. Source: Xiao et al. 2023, "SmoothQuant", equation 4.

    Args:
        weight: float32 (channels, columns).
        activation_max: Largest magnitude of each channel on calibration text, float32 (channels,).
        alpha: Migration strength, 0 to 1: how much of the differences between channels moves to the weights.

    Returns:
        float32 (channels,), with a geometric mean of 1.
    """
    weight_max = np.abs(weight).max(axis=1)
    factors = np.maximum(activation_max, _MIN_MAGNITUDE) ** alpha / np.maximum(weight_max, _MIN_MAGNITUDE) ** (
        1 - alpha
    )
    normalized: Array = (factors / np.exp(np.log(factors).mean())).astype(np.float32)
    return normalized
