"""Less padding: the texts of a batch, encoded in parts of like length."""

from collections.abc import Callable

import torch
from torch import nn

# Neither comes from a paper. Groups of 64 keep the matmuls large enough to use the processor; each group is a pass of
# its own, so batches with at most a quarter of padding, where little can be saved, are encoded in one.
_ROWS = 64
_WORTHWHILE = 0.75


def encoded_by_length(
    encode: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    token_ids: torch.Tensor,
    attention_mask: torch.Tensor,
) -> torch.Tensor:
    """Encode a batch so that a short text is not padded to the longest one.

    Args:
        encode: Gives token embeddings (rows, tokens, width) of ids and mask.
        token_ids: int64 (rows, tokens), padded on the right.
        attention_mask: int64 (rows, tokens).

    Returns:
        What `encode` gives of the whole batch, (rows, tokens, width), with zeros where there is padding alone.
    """
    lengths = attention_mask.sum(1)
    rows, longest = token_ids.shape
    if rows <= _ROWS or int(lengths.sum()) >= _WORTHWHILE * rows * longest:
        return encode(token_ids, attention_mask)
    order = lengths.argsort()
    parts = []
    for part in torch.split(order, _ROWS):
        length = int(lengths[part[-1]])
        encoded = encode(token_ids[part, :length], attention_mask[part, :length])
        parts.append(nn.functional.pad(encoded, (0, 0, 0, longest - length)))
    return torch.cat(parts)[order.argsort()]
