"""Int8 quantization of embedding tables and linear layers.

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

import onnx

from edgeembed_exporters.fusion.bias_folding import fold_biases
from edgeembed_exporters.fusion.qattention import fuse_qattention
from edgeembed_exporters.fusion.shared_norms import share_norms
from edgeembed_exporters.onnx.graph import Graph, copy_model
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
