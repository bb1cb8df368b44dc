"""Operator fusion: replace groups of nodes by one operator that ONNX Runtime computes faster on a CPU.

Fused are attention (MultiHeadAttention), the exact GELU, position embeddings and L2 normalization; constant weights are
stored transposed. Some operators are left unfused, since the fused ones are slower on a CPU than their parts
(`python -m experiments.export.fused_operators`; 14 tokens of width 384, one thread): SkipLayerNormalization (36 against
5 microseconds), hence EmbedLayerNormalization too, and BiasGelu (9 against 5).
"""

import onnx

from edgeembed_exporters.fusion.attention import fuse_attention
from edgeembed_exporters.fusion.gelu import fuse_gelu
from edgeembed_exporters.fusion.l2_norm import fuse_l2_norm
from edgeembed_exporters.fusion.positions import fuse_positions
from edgeembed_exporters.fusion.transposes import fold_transposes
from edgeembed_exporters.onnx.graph import copy_model

__all__ = ["fuse"]


def fuse(model: onnx.ModelProto, max_seq_length: int) -> onnx.ModelProto:
    """Fuse the operators of an encoder.

    Subgraphs that match no known pattern are kept.

    Args:
        model: A float32 model with the inputs input_ids and attention_mask; it is not changed.
        max_seq_length: Maximum number of tokens of the encoder.

    Returns:
        A new model with the same inputs, outputs and values.
    """
    fused = copy_model(model)
    fold_transposes(fused)
    fuse_attention(fused, max_seq_length)
    fuse_gelu(fused)
    fuse_positions(fused)
    fuse_l2_norm(fused)
    return fused
