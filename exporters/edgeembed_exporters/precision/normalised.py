"""Products of what a layer normalisation gives, in int8 with levels that are the same for every token.

A normalised token has a known length, so its channels keep to ranges: what calibration text showed, and at least three
standard deviations, which the normalisation's own weight and bias tell. A channel's range can be far from zero, so each
is centred and scaled, by a normalisation of the product's own, which costs no more than scaling alone. What was taken
away comes back with the product's bias (Outlier Suppression+, Wei et al. 2023).

All 255 levels are used, since whatever is beyond them ends at the last one. So weights have but 64 either side of zero:
`2 * 255 * 64 < 2**15` (see `int8`).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.editing import Editor, contrib_node
from edgeembed_exporters.precision.columns import round_columns, smoothing_factors
from edgeembed_exporters.precision.products import Group

Array = npt.NDArray[np.float32]

_ZERO = 128
_OUTERMOST = 127
_WEIGHT_LEVELS = 64
_DEVIATIONS = 3
_SMOOTHING = 0.6  # on a six-layer teacher better than 0.5, and as good as 0.7
_TINY = 1e-12


class Normalisation(NamedTuple):
    """A layer normalisation with stored weights.

    Attributes:
        node: Its node.
        weight: float32 (channels,).
        bias: float32 (channels,).
    """

    node: onnx.NodeProto
    weight: Array
    bias: Array

    @property
    def stored(self) -> tuple[str, ...]:
        """The names of weight and bias, which layers may share."""
        return tuple(self.node.input[1:])


def normalisation_of(editor: Editor, group: Group) -> Normalisation | None:
    """Give the layer normalisation that makes a group's activation; None where something else does."""
    node = editor.maker(group.activation)
    if node is None or node.op_type != "LayerNormalization" or node.output[0] != group.activation:
        return None
    weight = editor.constant(node.input[1])
    bias = editor.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros_like(weight)
    if weight is None or bias is None or weight.shape != (len(group.weight),) or bias.shape != weight.shape:
        return None
    return Normalisation(node, weight, bias)


def multiply_normalised(editor: Editor, group: Group, norm: Normalisation, reach: Array) -> list[onnx.NodeProto]:
    """Give the nodes of a group's product.

    Args:
        editor: The graph's.
        group: The products.
        norm: What makes their activation.
        reach: How far below and above zero each channel reached, float32 (2, channels).
    """
    spread = _DEVIATIONS * np.abs(norm.weight)
    below, above = np.maximum(reach, [spread - norm.bias, spread + norm.bias])
    middle, half = (above - below) / 2, (above + below) / 2
    factors = smoothing_factors(group.weight, half, _SMOOTHING)
    levels, scales = round_columns(group.weight * factors[:, None], _WEIGHT_LEVELS)
    output, fixed = group.output, editor.add_constant
    step = fixed(f"{output}.step", np.array(max((half / factors).max() / _OUTERMOST, _TINY), dtype=np.float32))
    zero = fixed("int8.middle", np.array(_ZERO, dtype=np.uint8))
    centred = {
        "weight": fixed(f"{output}.centred_weight", (norm.weight / factors).astype(np.float32)),
        "bias": fixed(f"{output}.centred_bias", ((norm.bias - middle) / factors).astype(np.float32)),
    }
    bias = fixed(f"{output}.bias", (group.bias + middle @ group.weight).astype(np.float32))
    weights = [fixed(f"{output}.weight", levels), step, fixed(f"{output}.scales", scales), zero, "", bias]
    return [
        _renormalise(norm.node, centred, f"{output}.centred"),
        helper.make_node("QuantizeLinear", [f"{output}.centred", step, zero], [f"{output}.levels"]),
        contrib_node("MatMulIntegerToFloat", [f"{output}.levels", *weights], output),
    ]


def _renormalise(node: onnx.NodeProto, stored: dict[str, Any], output: str) -> onnx.NodeProto:
    again: onnx.NodeProto = helper.make_node(node.op_type, [node.input[0], stored["weight"], stored["bias"]], [output])
    again.attribute.extend(node.attribute)
    return again
