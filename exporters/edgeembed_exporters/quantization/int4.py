"""int4: quantization of embedding tables and linear layers.

Weights are quantized blockwise by GPTQ (see `gptq`). Where the output would still change too much, the weights have 8
bits. Activations stay float32 in the model; ONNX Runtime's MatMulNBits quantizes each block of
a token to 8 bits on its own, so an embedding does not depend on its batch.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import onnx

from edgeembed_exporters.onnx.graph import Graph, contrib_node, copy_model
from edgeembed_exporters.precision import PRECISIONS, Precision
from edgeembed_exporters.quantization.blockwise import (
    QuantizedBlocks,
    dequantize_blocks,
    find_scales,
    quantize_blocks,
    quantize_rows,
)
from edgeembed_exporters.quantization.calibration import Moment, measure_activations
from edgeembed_exporters.quantization.embeddings import quantize_embeddings_int4
from edgeembed_exporters.quantization.gptq import gptq
from edgeembed_exporters.quantization.linear import (
    LinearGroup,
    combine_over_shared_weights,
    find_linear_groups,
    split_gemms,
)

Array = npt.NDArray[np.float32]

# Larger blocks are faster and smaller; on a six-layer teacher blocks of 32 were hardly more accurate.
_BLOCK_SIZE = 128
# Relative squared error of a layer's output on calibration text above which it has 8 bits. Layers of trained encoders
# stay far below.
_MAX_RELATIVE_ERROR = 0.01
_DAMPING = 0.01  # of the mean diagonal of the Hessian, as in the paper
_ACCURACY_LEVEL_INT8 = 4


@PRECISIONS.register("int4")
class Int4(Precision):
    """Weights of 4 bits. NumPy has no such type.

    The worst cosine of 2,910 sentences of a six-layer teacher measured 0.91, and the rank correlation on the STS-B dev
    set fell by 0.3 points (docs/results/export.md). all-MiniLM-L6-v2 measured a rank correlation of 0.945 and an
    overlap of 0.8 on the text in this package. A six-layer classifier of TREC's questions measured a label agreement
    of 0.865 there, and of 0.976 on TREC's test questions. Its largest difference of a probability was 0.96, so that
    only the agreement is limited.
    """

    help = "has an eighth of the size"
    file = "onnx/model_q4.onnx"
    bits = 4
    backends = ("onnx",)
    min_cosine = 0.85
    min_rank = 0.85
    min_overlap = 0.6
    min_label_agreement = 0.75
    max_probability_difference = 1.0

    @staticmethod
    def quantize(model: onnx.ModelProto, token_ids: Sequence[list[int]]) -> onnx.ModelProto:
        """Quantize embedding tables and linear layers to 4 bits."""
        return quantize_int4(model, token_ids)


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
    statistics = measure_activations(quantized, [group.activation for group in groups], token_ids)
    statistics = combine_over_shared_weights(groups, statistics)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for group in groups:
        blocks = _quantize_weight(group.weight, statistics[group.activation].moment)
        replacements |= group.replacements(graph, [_blockwise_matmul(graph, group, blocks)])
    graph.replace_nodes(replacements)
    return quantized


def _quantize_weight(weight: Array, moment: Moment) -> QuantizedBlocks:
    """Quantize weights to 4 bits, or to 8 if the output would change too much."""
    blocks = quantize_by_gptq(weight, moment, _BLOCK_SIZE, bits=4)
    error = (blocks.dequantized()[:, : len(weight)].T - weight).astype(np.float64)
    exact = weight.astype(np.float64)
    if (error * (moment @ error)).sum() <= _MAX_RELATIVE_ERROR * (exact * (moment @ exact)).sum():
        return blocks
    return quantize_rows(np.ascontiguousarray(weight.T), _BLOCK_SIZE, bits=8)


def quantize_by_gptq(weight: Array, moment: Moment, block_size: int, bits: int) -> QuantizedBlocks:
    """Quantize weights such that the output of their layer changes least on calibration text.

    Args:
        weight: float32 (channels, columns).
        moment: Second moment of the activations, X^T X, float64 (channels, channels).
        block_size: Number of channels that share a scale, and that are corrected together.
        bits: 4 or 8.

    Returns:
        The transposed weights, (columns, blocks, block size).
    """
    padding = -len(weight) % block_size
    rounding = _BlockRounding(weight.shape[1], len(weight) + padding, block_size, bits)
    padded = np.pad(moment, (0, padding))  # channels that are always zero
    gptq(np.pad(weight, [(0, padding), (0, 0)]), padded, rounding, block_size=block_size, damping=_DAMPING)
    return QuantizedBlocks(rounding.quantized, rounding.scales, bits)


class _BlockRounding:
    """Rounds weights in blocks whose scale is chosen when the block is reached, after the corrections before it.

    Args:
        columns: Number of columns.
        channels: Number of channels, whole blocks.
        block_size: Number of channels that share a scale.
        bits: 4 or 8.

    Attributes:
        quantized: uint8 (columns, blocks, block size).
        scales: float32 (columns, blocks).
    """

    def __init__(self, columns: int, channels: int, block_size: int, bits: int) -> None:
        blocks = channels // block_size
        self.quantized = np.empty((columns, blocks, block_size), dtype=np.uint8)
        self.scales = np.empty((columns, blocks), dtype=np.float32)
        self._block_size, self._bits = block_size, bits

    def start_block(self, start: int, block: Array) -> None:
        self.scales[:, start // self._block_size] = find_scales(block, self._bits)

    def round_channel(self, channel: int, weights: Array) -> Array:
        block, position = divmod(channel, self._block_size)
        scales = self.scales[:, block]
        rounded = quantize_blocks(weights[:, None], scales, self._bits)
        self.quantized[:, block, position] = rounded[:, 0]
        return dequantize_blocks(rounded, scales, self._bits)[:, 0]


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
