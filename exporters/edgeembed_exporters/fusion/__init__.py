"""Several nodes of a graph as one of onnxruntime's own: what it was measured to run faster.

Fused are attention (MultiHeadAttention), the exact GELU, positions with what is added to every token, and the division
by a vector's length. Left as they are, since the fused operator is slower on a CPU than its parts
(`python -m experiments.fused_operators`; 14 tokens of 384, one thread): the sum and LayerNormalization of a skip
connection (36 against 5 microseconds), so the sum and norm of the embedding layer too, and the bias before a GELU (9
against 5).
"""

import onnx

from edgeembed_exporters.fusion.attention import fuse_attention
from edgeembed_exporters.fusion.gelu import fuse_gelu
from edgeembed_exporters.fusion.positions import fuse_positions
from edgeembed_exporters.fusion.unit_length import fuse_unit_length

__all__ = ["fuse"]


def fuse(model: onnx.ModelProto, max_seq_length: int) -> onnx.ModelProto:
    """Give a graph with the same inputs, outputs and values in fewer nodes.

    What does not have a shape that is known stays as it is.

    Args:
        model: The graph, in float32: input_ids and attention_mask in.
        max_seq_length: The most tokens that it takes.
    """
    fused = onnx.ModelProto()
    fused.CopyFrom(model)
    fuse_attention(fused, max_seq_length)
    fuse_gelu(fused)
    fuse_positions(fused)
    fuse_unit_length(fused)
    return fused
