"""Matrix products with weights of 4 bits, in blocks that have a scale each.

The weights of a product are rounded one channel after the other, and what each rounding does wrong on real activations
is made good by the channels still to come (GPTQ, Frantar et al. 2023, algorithm 1). Where the product still changes too
much its weights keep 8 bits. Activations stay float32 in the file; onnxruntime rounds them to 8 bits in blocks of their
own while it multiplies, so no vector depends on its batch.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import onnx

from edgeembed_exporters.editing import Editor, contrib_node
from edgeembed_exporters.precision.blocks import Blocks, block_scales, dequantise, in_blocks, quantise, round_rows
from edgeembed_exporters.precision.calibration import measure_moments
from edgeembed_exporters.precision.products import Group, find_products, over_shared, split_gemms

Array = npt.NDArray[np.float32]
Moment = npt.NDArray[np.float64]

# Larger blocks are faster and take less space; on a six-layer teacher those of 32 were hardly more faithful.
_BLOCK = 128
# Share of a product's second moment that rounding may change. Weights of a trained encoder stay far below.
_MOST_CHANGED = 0.01
_DAMPING = 0.01
_MULTIPLY_IN_INT8 = 4


def quantise_products(model: onnx.ModelProto, token_ids: Iterable[list[int]]) -> onnx.ModelProto:
    """Give the graph with the weights of every product with a constant matrix in 4 bits, or 8 where 4 cost too much.

    Args:
        model: The graph, in float32.
        token_ids: Texts to calibrate on, one unpadded row of token ids each; a few dozen are enough.

    Returns:
        A new graph with the same inputs and outputs.
    """
    quantize = onnx.ModelProto()
    quantize.CopyFrom(model)
    split_gemms(quantize)
    editor = Editor(quantize)
    groups = find_products(editor)
    moments = measure_moments(quantize, [group.activation for group in groups], token_ids)
    moments = over_shared(groups, moments, np.add)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for group in groups:
        blocks = _rounded(group.weight, moments[group.activation])
        replacements |= group.replacements(editor, [_product(editor, group, blocks)])
    editor.replace(replacements)
    return quantize


def _rounded(weight: Array, moment: Moment) -> Blocks:
    blocks = round_weights(weight, moment, _BLOCK, bits=4)
    change = (blocks.values()[:, : len(weight)].T - weight).astype(np.float64)
    exact = weight.astype(np.float64)
    if (change * (moment @ change)).sum() <= _MOST_CHANGED * (exact * (moment @ exact)).sum():
        return blocks
    return round_rows(np.ascontiguousarray(weight.T), _BLOCK, bits=8)


def round_weights(weight: Array, moment: Moment, block: int, bits: int) -> Blocks:
    """Round a product's weights so that the product changes least.

    Args:
        weight: float32 (channels, columns).
        moment: The activations' second moment, X^T X, float64 (channels, channels).
        block: Channels a block.
        bits: Of a weight.

    Returns:
        The transposed weights, (columns, blocks, block).
    """
    rest = in_blocks(np.ascontiguousarray(weight.T), block)
    columns, count, _ = rest.shape
    inverse = _inverse_factor(moment, count * block)
    levels, scales = np.empty(rest.shape, dtype=np.uint8), np.empty((columns, count), dtype=np.float32)
    for number in range(count):
        start, end = number * block, (number + 1) * block
        part, scale = rest[:, number], block_scales(rest[:, number], bits)
        errors = np.empty_like(part)
        for i in range(block):
            level = quantise(part[:, i, None], scale, bits)
            errors[:, i] = (part[:, i] - dequantise(level, scale, bits)[:, 0]) / inverse[start + i, start + i]
            part[:, i + 1 :] -= np.outer(errors[:, i], inverse[start + i, start + i + 1 : end])
            levels[:, number, i] = level[:, 0]
        rest.reshape(columns, -1)[:, end:] -= errors @ inverse[start:end, end:]
        scales[:, number] = scale
    return Blocks(levels, scales, bits)


def _inverse_factor(moment: Moment, size: int) -> Array:
    """Give the upper Cholesky factor of the inverse of a damped moment, filled up with channels that are never used."""
    channels = len(moment)
    damped = np.eye(size)
    damped[:channels, :channels] = moment + np.eye(channels) * (_DAMPING * np.diag(moment).mean() + 1e-9)
    return np.ascontiguousarray(np.linalg.cholesky(np.linalg.inv(damped)).T).astype(np.float32)


def _product(editor: Editor, group: Group, blocks: Blocks) -> onnx.NodeProto:
    output = group.output
    channels, columns = group.weight.shape
    inputs = [
        group.activation,
        editor.add_constant(f"{output}.weight", blocks.packed()),
        editor.add_constant(f"{output}.scales", blocks.scales),
        "",
        "",
        editor.add_constant(f"{output}.bias", group.bias),
    ]
    choices = {"bits": blocks.bits, "block_size": _BLOCK, "accuracy_level": _MULTIPLY_IN_INT8}
    return contrib_node("MatMulNBits", inputs, output, K=channels, N=columns, **choices)
