"""How many numbers a model holds, with and without its embedding tables."""

from edgeembed_bench.model_info import Parameters, count_bundle
from edgeembed_runtime import Encoder

from edgeembed.evaluation.encoders import SentenceEncoder


def count_parameters(encoder: SentenceEncoder) -> Parameters | None:
    """Count what an encoder holds.

    Embeddings are the tables that rows are looked up in, as SimTDE counts them: vectors of tokens, of positions and of
    token types (its 91 % of BERT-Tiny are these three). The projection that widens a student's narrow token table is a
    matrix product, and counts as the layers do; so a student and its bundle are counted alike.

    Args:
        encoder: A `SentenceTransformer` or a runtime `Encoder`.

    Returns:
        The counts; None for an encoder of another kind, which tells nothing of itself.
    """
    if isinstance(encoder, Encoder):
        return count_bundle(encoder.bundle)
    from torch import nn

    if not isinstance(encoder, nn.Module):
        return None
    tables = {each.weight: None for each in encoder.modules() if isinstance(each, nn.Embedding | nn.EmbeddingBag)}
    return Parameters(sum(weight.numel() for weight in encoder.parameters()), sum(table.numel() for table in tables))
