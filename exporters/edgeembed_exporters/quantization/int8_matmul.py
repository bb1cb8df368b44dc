"""Parts of an int8 matmul: rounding of weights, smoothing of activations, the operator.

Saturation: processors with AVX2 but without VNNI multiply uint8 activations by int8 weights with VPMADDUBSW, which adds
the products of two adjacent channels, 2k and 2k + 1, in int16 and saturates. With 8 bits each, a pair can reach
2 * 255 * 127, twice the range of int16. So the scale of a column is such that no pair of its weights reaches more than
int16 holds, whatever the activations are. Large weights are rare, and two of one sign side by side are rarer: nearly
all columns use 8 bits. The activation counts from 0 there, since the zero point is subtracted after the multiplication.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnx

from edgeembed_exporters.onnx.graph import Graph, contrib_node
from edgeembed_exporters.quantization.calibration import Moment
from edgeembed_exporters.quantization.gptq import gptq

Array = npt.NDArray[np.float32]

_INT16_MAX = 2**15 - 1
_WEIGHT_MAX = 127
_MIN_MAGNITUDE = 1e-5  # keeps channels of zeros from a factor of zero
_MIN_COLUMN_MAX = 1e-12
_GPTQ_BLOCK_SIZE = 128
# Calibration text has about as many tokens as a layer has channels: with less damping, GPTQ fits the text.
_GPTQ_DAMPING = 0.3


class QuantizedActivation(NamedTuple):
    """Names of a quantized activation and its parameters.

    Attributes:
        name: uint8 (..., channels).
        scale: A float32 scalar.
        zero_point: A uint8 scalar.
        largest: The largest value, 255 or less.
    """

    name: str
    scale: str
    zero_point: str
    largest: int = 255


def int8_matmul(
    graph: Graph,
    activation: QuantizedActivation,
    weight: Array,
    *,
    name: str,
    output: str,
    bias: Array | None = None,
    moment: Moment | None = None,
) -> onnx.NodeProto:
    """Return a MatMulIntegerToFloat node, and add its initializers to the graph.

    Args:
        graph: The graph that the node is for.
        activation: The first factor.
        weight: float32 (channels, columns), to be rounded per column.
        name: Prefix for the names of initializers.
        output: Name of the result, float32 (..., columns).
        bias: float32 (columns,), added to the result; None adds nothing.
        moment: Second moment of the activation, float64 (channels, channels), by which weights are rounded (GPTQ);
            None rounds each to the nearest.
    """
    rounded, weight_scales = round_weights(weight, activation.largest, moment)
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


def round_weights(
    weight: Array, largest_activation: int, moment: Moment | None = None
) -> tuple[npt.NDArray[np.int8], Array]:
    """Round weights to integers with one scale for each column, such that no pair of products saturates.

    Args:
        weight: float32 (channels, columns).
        largest_activation: The largest value of an activation, which counts from 0.
        moment: Second moment of the activation, float64 (channels, channels); None rounds each weight to the nearest.

    Returns:
        The rounded weights, int8 (channels, columns), and their scales, float32 (columns,).
    """
    pair_max = _INT16_MAX // largest_activation
    # Rounding may add a half to both weights of a pair.
    scales = np.maximum(np.abs(weight).max(axis=0) / _WEIGHT_MAX, _pair_sums(weight) / (pair_max - 1))
    scales = np.maximum(scales, _MIN_COLUMN_MAX).astype(np.float32)
    if moment is None:
        return np.rint(weight / scales).astype(np.int8), scales
    rounding = _PairRounding(scales, pair_max, len(weight))
    gptq(weight, moment, rounding, block_size=_GPTQ_BLOCK_SIZE, damping=_GPTQ_DAMPING)
    return np.ascontiguousarray(rounding.rounded.T), scales


class _PairRounding:
    """Rounds weights such that no two adjacent ones of one sign have a sum beyond a maximum.

    Args:
        scales: float32 (columns,).
        pair_max: The maximum of the sum.
        channels: Number of channels.

    Attributes:
        rounded: int8 (columns, channels).
    """

    def __init__(self, scales: Array, pair_max: int, channels: int) -> None:
        self.rounded = np.zeros((len(scales), channels), dtype=np.int8)
        self._scales, self._pair_max = scales, pair_max

    def start_block(self, start: int, block: Array) -> None:
        """Do nothing: the scales are those of whole columns."""

    def round_channel(self, channel: int, weights: Array) -> Array:
        lowest, highest = -_WEIGHT_MAX, _WEIGHT_MAX
        if channel % 2:
            neighbor = self.rounded[:, channel - 1].astype(np.int32)
            lowest = np.maximum(lowest, -self._pair_max - np.minimum(neighbor, 0))
            highest = np.minimum(highest, self._pair_max - np.maximum(neighbor, 0))
        rounded = np.clip(np.rint(weights / self._scales), lowest, highest)
        self.rounded[:, channel] = rounded
        values: Array = (rounded * self._scales).astype(np.float32)
        return values


def _pair_sums(weight: Array) -> Array:
    """Return the largest magnitude (columns,) that two adjacent weights of one sign, or one alone, add up to."""
    padded = np.pad(weight, [(0, len(weight) % 2), (0, 0)])
    even, odd = padded[::2], padded[1::2]
    sums = [np.maximum(sign * even, 0) + np.maximum(sign * odd, 0) for sign in (1, -1)]
    largest: Array = np.maximum(*sums).max(axis=0)
    return largest


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
