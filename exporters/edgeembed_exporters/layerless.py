"""A transformers configuration for encoders that have no layers."""

from typing import Any

import transformers

_HF: Any = transformers  # it carries no types


def layerless_config(vocabulary_size: int, width: int, max_seq_length: int) -> Any:
    """Give the configuration of a BERT without layers.

    transformers has no name for tables of tokens, and programs refuse what has none: this is the nearest.

    Args:
        vocabulary_size: How many tokens there are.
        width: Numbers a vector.
        max_seq_length: The most tokens of a text.
    """
    return _HF.BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=width,
        num_hidden_layers=0,
        num_attention_heads=1,
        intermediate_size=width,
        max_position_embeddings=max_seq_length,
    )
