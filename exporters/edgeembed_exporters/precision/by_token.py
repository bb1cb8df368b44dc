"""Products in int8 whose activations have a scale for every token.

- Levels end at 180 and weights at 91: `2 * 180 * 91 < 2**15` (see `int8`). Zero is at 90, or lower where little or
  nothing of an activation is below it.
- Channels whose activations are large are scaled down, and their weights up (SmoothQuant, Xiao et al. 2023). What
  comes out of an attention, a GELU or a ReLU is even enough: with smoothing it was no nearer to the model, only slower.
"""

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.editing import Editor, contrib_node
from edgeembed_exporters.precision.columns import round_columns, smoothing_factors
from edgeembed_exporters.precision.products import Group

Array = npt.NDArray[np.float32]

_LEVELS = 180
_WEIGHT_LEVELS = 91
_SMOOTHING = 0.5  # the paper's default
# Levels for what a function gives below zero: it gives nothing below the least value here.
_LOW_LEVELS = {"Gelu": 20, "Relu": 0}
_GELU_LEAST = -0.17  # it is -0.16997
_EVEN = {*_LOW_LEVELS, "MultiHeadAttention"}


def multiply_by_token(editor: Editor, group: Group, reach: Array) -> list[onnx.NodeProto]:
    """Give the nodes of a group's product.

    Args:
        editor: The graph's.
        group: The products.
        reach: How far below and above zero each channel of their activation reached, float32 (2, channels).
    """
    made_by = editor.maker(group.activation)
    kind = "" if made_by is None else made_by.op_type
    weight, nodes, given = group.weight, [], group.activation
    if kind not in _EVEN:
        factors = smoothing_factors(weight, reach.max(axis=0), _SMOOTHING)
        weight, smoothed = weight * factors[:, None], f"{given}.smoothed"
        nodes = [helper.make_node("Mul", [given, editor.add_constant(f"{given}.smoothing", 1 / factors)], [smoothed])]
        given = smoothed
    low = _LOW_LEVELS.get(kind)
    nodes += _peaks(editor, group, given, low)
    step, zero = _levels(editor, low)
    return [*nodes, *_quantise(group, given, step, zero), *_multiply(editor, group, weight, step, zero)]


def _levels(editor: Editor, low: int | None) -> tuple[str, str]:
    """Give a level's size relative to the peak, and the level of zero."""
    zero = _LEVELS // 2 if low is None else low
    step = editor.add_constant(f"int8.step_{zero}", np.array(1 / (_LEVELS - zero), dtype=np.float32))
    return step, editor.add_constant(f"int8.zero_{zero}", np.array(zero, dtype=np.uint8))


def _peaks(editor: Editor, group: Group, given: str, low: int | None) -> list[onnx.NodeProto]:
    """Give the nodes that find what a token's outermost level stands for, (..., 1)."""
    node, name = helper.make_node, group.activation
    axis = editor.add_constant("int8.last_axis", np.array([-1], dtype=np.int64))
    if low is None:
        height = node("Abs", [given], [f"{name}.height"])
        return [height, node("ReduceMax", [f"{name}.height", axis], [f"{name}.peaks"], keepdims=1)]
    if not low:
        return [node("ReduceMax", [given, axis], [f"{name}.peaks"], keepdims=1)]
    # The least that a peak may be for the levels below zero to reach the function's least value.
    least = editor.add_constant("int8.least_peak", np.array(-_GELU_LEAST * (_LEVELS - low) / low, dtype=np.float32))
    highest = node("ReduceMax", [given, axis], [f"{name}.highest"], keepdims=1)
    return [highest, node("Max", [f"{name}.highest", least], [f"{name}.peaks"])]


def _quantise(group: Group, given: str, step: str, zero: str) -> list[onnx.NodeProto]:
    """Give the nodes that make levels of an activation.

    Of a row of zeros, 0 / 0 becomes some level or other, which is multiplied by the peak, 0, in the end.
    """
    name = group.activation
    return [
        helper.make_node("Div", [given, f"{name}.peaks"], [f"{name}.relative"]),
        helper.make_node("QuantizeLinear", [f"{name}.relative", step, zero], [f"{name}.levels"]),
    ]


def _multiply(editor: Editor, group: Group, weight: Array, step: str, zero: str) -> list[onnx.NodeProto]:
    """Give the nodes that multiply levels with weights, then with the scales of both, and add the bias."""
    name, output, node = group.activation, group.output, helper.make_node
    levels, scales = round_columns(weight, _WEIGHT_LEVELS)
    stored = editor.add_constant(f"{output}.weight", levels), editor.add_constant(f"{output}.scales", scales)
    factors = [f"{name}.levels", stored[0], step, stored[1], zero]
    return [
        contrib_node("MatMulIntegerToFloat", factors, f"{output}.unscaled"),
        node("Mul", [f"{output}.unscaled", f"{name}.peaks"], [f"{output}.scaled"]),
        node("Add", [f"{output}.scaled", editor.add_constant(f"{output}.bias", group.bias)], [output]),
    ]
