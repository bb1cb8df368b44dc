"""Int4 quantization of embedding tables and linear layers.

Weights are quantized blockwise by GPTQ (Frantar et al. 2023, algorithm 1), which rounds one input channel after the
other and corrects the channels that follow for the error on calibration text. Where the output would still change too
much, the weights have 8 bits. Activations stay float32 in the model; ONNX Runtime's MatMulNBits quantizes each block of
a token to 8 bits on its own, so an embedding does not depend on its batch.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import onnx

from edgeembed_exporters.onnx.graph import Graph, contrib_node, copy_model
from edgeembed_exporters.quantization.blockwise import (
    QuantizedBlocks,
    dequantize_blocks,
    find_scales,
    quantize_blocks,
    quantize_rows,
    split_into_blocks,
)
from edgeembed_exporters.quantization.calibration import measure_moments
from edgeembed_exporters.quantization.embeddings import quantize_embeddings_int4
from edgeembed_exporters.quantization.linear import (
    LinearGroup,
    combine_over_shared_weights,
    find_linear_groups,
    split_gemms,
)

Array = npt.NDArray[np.float32]
Moment = npt.NDArray[np.float64]

# Larger blocks are faster and smaller; on a six-layer teacher blocks of 32 were hardly more accurate.
_BLOCK_SIZE = 128
# Relative squared error of a layer's output on calibration text above which it has 8 bits. Layers of trained encoders
# stay far below.
_MAX_RELATIVE_ERROR = 0.01
_DAMPING = 0.01  # of the mean diagonal of the Hessian, as in the paper
_ACCURACY_LEVEL_INT8 = 4


def quantize_int4(model: onnx.ModelProto, token_ids: Iterable[list[int]]) -> onnx.ModelProto:
    """Quantize all large embedding tables and all linear layers to 4 bits; layers that lose too much have 8.

    Args:
        model: A float32 model; it is not changed.
        token_ids: Calibration text: the unpadded token ids of each text. A few dozen texts are enough.

    Returns:
        A new model with the same inputs and outputs.
    """
    quantized = copy_model(model)
    quantize_embeddings_int4(quantized)
    split_gemms(quantized)
    graph = Graph(quantized)
    groups = find_linear_groups(graph)
    moments = measure_moments(quantized, [group.activation for group in groups], token_ids)
    moments = combine_over_shared_weights(groups, moments, np.add)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for group in groups:
        blocks = _quantize_weight(group.weight, moments[group.activation])
        replacements |= group.replacements(graph, [_blockwise_matmul(graph, group, blocks)])
    graph.replace_nodes(replacements)
    return quantized


def _quantize_weight(weight: Array, moment: Moment) -> QuantizedBlocks:
    """Quantize weights to 4 bits, or to 8 if the output would change too much."""
    blocks = gptq(weight, moment, _BLOCK_SIZE, bits=4)
    error = (blocks.dequantized()[:, : len(weight)].T - weight).astype(np.float64)
    exact = weight.astype(np.float64)
    if (error * (moment @ error)).sum() <= _MAX_RELATIVE_ERROR * (exact * (moment @ exact)).sum():
        return blocks
    return quantize_rows(np.ascontiguousarray(weight.T), _BLOCK_SIZE, bits=8)


def gptq(weight: Array, moment: Moment, block_size: int, bits: int) -> QuantizedBlocks:
    """Quantize weights such that the output of their layer changes least on calibration text.

    Source: Frantar et al. 2023, "GPTQ", algorithm 1. The scale of a block is chosen when the block is reached, after
    the corrections by earlier blocks.

    Args:
        weight: float32 (channels, columns).
        moment: Second moment of the activations, X^T X, float64 (channels, channels).
        block_size: Number of channels that share a scale, and that are corrected together.
        bits: 4 or 8.

    Returns:
        The transposed weights, (columns, blocks, block size).
    """
    rest = split_into_blocks(np.ascontiguousarray(weight.T), block_size)
    columns, count, _ = rest.shape
    inverse = _inverse_hessian_factor(moment, count * block_size)
    quantized, scales = np.empty(rest.shape, dtype=np.uint8), np.empty((columns, count), dtype=np.float32)
    for number in range(count):
        start, end = number * block_size, (number + 1) * block_size
        block, scale = rest[:, number], find_scales(rest[:, number], bits)
        errors = np.empty_like(block)
        for i in range(block_size):
            rounded = quantize_blocks(block[:, i, None], scale, bits)
            errors[:, i] = (block[:, i] - dequantize_blocks(rounded, scale, bits)[:, 0]) / inverse[start + i, start + i]
            block[:, i + 1 :] -= np.outer(errors[:, i], inverse[start + i, start + i + 1 : end])
            quantized[:, number, i] = rounded[:, 0]
        rest.reshape(columns, -1)[:, end:] -= errors @ inverse[start:end, end:]
        scales[:, number] = scale
    return QuantizedBlocks(quantized, scales, bits)


def _inverse_hessian_factor(moment: Moment, size: int) -> Array:
    """Return the upper Cholesky factor of the inverse of the damped moment, padded with unused channels."""
    channels = len(moment)
    damped = np.eye(size)
    damped[:channels, :channels] = moment + np.eye(channels) * (_DAMPING * np.diag(moment).mean() + 1e-9)
    return np.ascontiguousarray(np.linalg.cholesky(np.linalg.inv(damped)).T).astype(np.float32)


def _blockwise_matmul(graph: Graph, group: LinearGroup, blocks: QuantizedBlocks) -> onnx.NodeProto:
    output = group.output
    channels, columns = group.weight.shape
    no_zero_points = no_group_index = ""
    inputs = [
        group.activation,
        graph.add_initializer(f"{output}.weight", blocks.packed()),
        graph.add_initializer(f"{output}.scales", blocks.scales),
        no_zero_points,
        no_group_index,
        graph.add_initializer(f"{output}.bias", group.bias),
    ]
    parameters = {"bits": blocks.bits, "block_size": _BLOCK_SIZE, "accuracy_level": _ACCURACY_LEVEL_INT8}
    return contrib_node("MatMulNBits", inputs, output, K=channels, N=columns, **parameters)
