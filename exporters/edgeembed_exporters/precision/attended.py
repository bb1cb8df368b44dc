"""Products of what an attention gives, in int8 with levels that are the same for every token.

What it gives is a mean of values, weighted by what a token attends to: it lies among them. So what is done to each
channel of the values, which a product makes, is done to the attention's too: they are centred and scaled by that
product's own weights and bias, for nothing. Levels reach twice as far as calibration text did: with less, text in
another language went beyond the last one.

All 255 levels are used, so weights have but 64 either side of zero, as in `normalised`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.editing import Editor, contrib_node
from edgeembed_exporters.precision.columns import round_columns, smoothing_factors
from edgeembed_exporters.precision.products import Group, Product

Array = npt.NDArray[np.float32]

_ZERO = 128
_OUTERMOST = 127
_WEIGHT_LEVELS = 64
_MARGIN = 2.0
_SMOOTHING = 0.6
_TINY = 1e-12


@dataclass(frozen=True)
class Attended:
    """Groups of products whose values are centred.

    Attributes:
        groups: All groups, those that make values and those that read attentions with other weights.
        steps: What a level stands for, by the activation that an attention gives.
    """

    groups: tuple[Group, ...]
    steps: dict[str, float]


def centre_values(editor: Editor, groups: Sequence[Group], reaches: dict[str, Array]) -> Attended:
    """Center and scale what attentions give, where one product makes the values and only products read the attention.

    Args:
        editor: The graph's.
        groups: All products.
        reaches: How far below and above zero each channel of each activation reached, float32 (2, channels).
    """
    made, steps = list(groups), {}
    for place, group in enumerate(groups):
        found = _makers_place(editor, group, made)
        if found is None:
            continue
        below, above = reaches[group.activation]
        middle, half = (above - below) / 2, np.maximum((above + below) / 2, _TINY)
        factors = smoothing_factors(group.weight, half, _SMOOTHING)
        where, values = found
        made[where] = _with(made[where], values, (values.weight / factors), (values.bias - middle) / factors)
        for product in group.products:
            scaled = product.weight * factors[:, None]
            made[place] = _with(made[place], product, scaled, product.bias + middle @ product.weight)
        steps[group.activation] = float(max((half / factors).max() * _MARGIN / _OUTERMOST, _TINY))
    return Attended(tuple(made), steps)


def multiply_attended(editor: Editor, group: Group, step: float) -> list[onnx.NodeProto]:
    """Give the nodes of a group's product.

    Args:
        editor: The graph's.
        group: The products.
        step: What a level of their activation stands for.
    """
    output, fixed = group.output, editor.add_constant
    levels, scales = round_columns(group.weight, _WEIGHT_LEVELS)
    stored = fixed(f"{output}.step", np.array(step, dtype=np.float32))
    zero = fixed("int8.middle", np.array(_ZERO, dtype=np.uint8))
    bias = fixed(f"{output}.bias", group.bias.astype(np.float32))
    weights = [fixed(f"{output}.weight", levels), stored, fixed(f"{output}.scales", scales), zero, "", bias]
    return [
        helper.make_node("QuantizeLinear", [group.activation, stored, zero], [f"{group.activation}.levels"]),
        contrib_node("MatMulIntegerToFloat", [f"{group.activation}.levels", *weights], output),
    ]


def _makers_place(editor: Editor, group: Group, groups: Sequence[Group]) -> tuple[int, Product] | None:
    """Give the product that makes an attention's values, and its group's place."""
    node = editor.maker(group.activation)
    if node is None or node.op_type != "MultiHeadAttention":
        return None
    if len(editor.readers(group.activation)) != len(group.products) or len(editor.readers(node.input[2])) != 1:
        return None
    for place, other in enumerate(groups):
        for product in other.products:
            if product.output == node.input[2] and not _is_shared(editor, [product, *group.products]):
                return place, product
    return None


def _is_shared(editor: Editor, products: Sequence[Product]) -> bool:
    return any(len(editor.readers(product.node.input[1])) > 1 for product in products)


def _with(group: Group, product: Product, weight: Array, bias: Array) -> Group:
    changed = replace(product, weight=weight.astype(np.float32), bias=bias.astype(np.float32))
    return Group(tuple(changed if each.output == product.output else each for each in group.products))
