"""int8: quantization of embedding tables and linear layers.

An embedding depends neither on its batch, as with ONNX Runtime's dynamic quantization, nor on the processor, since no
sum saturates (`int8_matmul`). Weights are rounded by GPTQ. Every linear layer is quantized in one of four ways:

- after an embedding lookup: the quantized rows of the table are multiplied (`int8_embeddings`)
- after a layer norm: static scale (`int8_static`)
- after an attention: static scale, with centered values (`int8_static`)
- elsewhere: one scale for each token (`int8_dynamic`). The range after a GELU differs too much from text to text for a
  static scale. Outlier channels are multiplied in float32 (`int8_dynamic`).

docs/results/export.md has measurements with all-MiniLM-L6-v2.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import onnx

from edgeembed_exporters.fusion.bias_folding import fold_biases
from edgeembed_exporters.fusion.qattention import fuse_qattention
from edgeembed_exporters.fusion.shared_norms import share_norms
from edgeembed_exporters.onnx.graph import Graph, copy_model
from edgeembed_exporters.precision import PRECISIONS, Precision
from edgeembed_exporters.quantization.calibration import measure_activations
from edgeembed_exporters.quantization.embeddings import quantize_embeddings_int8
from edgeembed_exporters.quantization.int8_dynamic import per_token_matmul
from edgeembed_exporters.quantization.int8_embeddings import embedding_matmul, find_embedding_levels
from edgeembed_exporters.quantization.int8_static import (
    LayerNorm,
    attention_matmul,
    center_attention_values,
    find_layer_norm,
    layer_norm_matmul,
)
from edgeembed_exporters.quantization.linear import (
    LinearGroup,
    combine_over_shared_weights,
    find_linear_groups,
    split_gemms,
)

_LARGEST = 127


@PRECISIONS.register("int8")
class Int8(Precision):
    """Weights of 8 bits, and int8 matmuls.

    The worst cosine of 2,910 sentences of a six-layer teacher measured 0.994; a faulty quantization falls far below
    0.99. all-MiniLM-L6-v2 measured a rank correlation of 0.997 and an overlap of 0.95 on the text in this package. A
    bundle that lost the order of a model whose embeddings are all alike measured 0.5 and 0.3, with all cosines above
    0.999. A six-layer classifier of TREC's questions measured a label agreement of 0.967 and a largest difference of a
    probability of 0.23 on the same text, most of which resembles no question; on TREC's test questions the labels
    agreed for 0.998.
    """

    help = "has a quarter of the size and half the latency"
    file = "onnx/model_quantized.onnx"
    bits = 8
    keeps_levels = True
    min_cosine = 0.99
    min_rank = 0.95
    min_overlap = 0.8
    min_label_agreement = 0.9
    max_probability_difference = 0.5

    @staticmethod
    def quantize(model: onnx.ModelProto, token_ids: Sequence[list[int]]) -> onnx.ModelProto:
        """Quantize embedding tables and linear layers to int8."""
        return quantize_int8(model, token_ids)

    @staticmethod
    def pack(matrix: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
        """Return the matrix in int8, each row divided by its scale."""
        scale = np.abs(matrix).max(axis=1) / _LARGEST
        quantized = np.rint(matrix / np.where(scale == 0, 1, scale)[:, None]).astype(np.int8)
        return quantized, scale.astype(np.float32)


def quantize_int8(model: onnx.ModelProto, token_ids: Iterable[list[int]]) -> onnx.ModelProto:
    """Quantize all large embedding tables and all linear layers to int8.

    Args:
        model: A float32 model; it is not changed.
        token_ids: Calibration text: the unpadded token ids of each text. A few dozen texts are enough.

    Returns:
        A new model with the same inputs and outputs.
    """
    quantized = copy_model(model)
    quantize_embeddings_int8(quantized)
    _quantize_linear_layers(quantized, token_ids)
    fold_biases(quantized)
    fuse_qattention(quantized)
    share_norms(quantized)
    return quantized


def _quantize_linear_layers(model: onnx.ModelProto, token_ids: Iterable[list[int]]) -> None:
    split_gemms(model)
    graph = Graph(model)
    groups = find_linear_groups(graph)
    statistics = measure_activations(model, [group.activation for group in groups], token_ids)
    statistics = combine_over_shared_weights(groups, statistics)
    layer_norms = _find_layer_norms(graph, groups)
    attentions = center_attention_values(graph, groups, statistics)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for group in attentions.groups:
        name = group.activation
        levels = find_embedding_levels(graph, group)
        if levels is not None:
            nodes = embedding_matmul(graph, group, levels)
        elif name in attentions.outputs:
            nodes = attention_matmul(graph, group, attentions.outputs[name])
        elif name in layer_norms:
            nodes = layer_norm_matmul(graph, group, layer_norms[name], statistics[name])
        else:
            nodes = per_token_matmul(graph, group, statistics[name])
        replacements |= group.replacements(graph, nodes)
    graph.replace_nodes(replacements)


def _find_layer_norms(graph: Graph, groups: Sequence[LinearGroup]) -> dict[str, LayerNorm]:
    """Return the layer norms before linear layers, by the name of their output.

    Left out are those of layers that share weights but follow different layer norms: smoothing would give each layer
    weights of its own.
    """
    found = {group.activation: find_layer_norm(graph, group) for group in groups}
    parameters: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for group in groups:
        norm = found[group.activation]
        parameters.setdefault(group.weight_names, set()).add(norm.parameter_names if norm else ())
    conflicting = {group.activation for group in groups if len(parameters[group.weight_names]) > 1}
    return {activation: norm for activation, norm in found.items() if norm and activation not in conflicting}
