"""Encoding of a batch in groups of similar length, in few distinct shapes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

import torch
from torch import nn

# Powers of two and three times powers of two. oneDNN compiles a primitive for each new shape of a matmul, which takes
# longer than a matmul of a training step: with rows and lengths of these sizes alone, the shapes recur.
_SIZES = sorted({base << power for base in (2, 3) for power in range(16)})
_SHORTEST = 8
# Fewest and most tokens of a group. On a processor with AMX, where this was measured, fewer do not use it; of more, the
# attention weights of long texts do not fit its caches. An accelerator waits for the launches of small groups instead.
_TOKENS_ON_CPU = (1024, 2048)
_TOKENS_ON_ACCELERATORS = (65_536, 65_536)


def encode_by_length(
    encode: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    token_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    max_length: int,
) -> torch.Tensor:
    """Encode a batch in groups of similar length, so that short texts are not padded to the longest.

    Args:
        encode: Function from ids and mask to token embeddings (rows, tokens, width).
        token_ids: int64 (rows, tokens), padded on the right.
        attention_mask: int64 (rows, tokens).
        max_length: Most tokens that a text is padded to.

    Returns:
        Token embeddings of the whole batch in its order, (rows, tokens, width). Positions beyond the longest text of a
        row's group are zero.
    """
    longest = token_ids.shape[1]
    max_length = max(max_length, longest)
    lengths, order = attention_mask.sum(1).sort(descending=True)
    padding = (0, min(_size(longest), max_length) - longest)
    ids, mask = (nn.functional.pad(tensor, padding) for tensor in (token_ids, attention_mask))
    tokens = _TOKENS_ON_CPU if ids.device.type == "cpu" else _TOKENS_ON_ACCELERATORS
    encoded = []
    for first, rows, length in _groups(lengths.tolist(), max_length, *tokens):
        group = order[first : first + rows]
        if len(group) < rows:  # the last text again, whose copies are dropped below
            group = torch.cat([group, group[-1:].expand(rows - len(group))])
        embeddings = encode(ids[group, :length], mask[group, :length])[:, :longest]
        encoded.append(nn.functional.pad(embeddings, (0, 0, 0, longest - embeddings.shape[1])))
    return torch.cat(encoded).index_select(0, order.argsort())


def _groups(lengths: list[int], max_length: int, min_tokens: int, max_tokens: int) -> Iterator[tuple[int, int, int]]:
    """Yield first text, rows and the padded length of each group of texts, which are sorted by falling length."""
    first = 0
    while first < len(lengths):
        length = _size(max(lengths[first], _SHORTEST))
        shorter = _SIZES[_SIZES.index(length) - 1]
        similar = sum(count > shorter for count in lengths[first:])
        rows = _size(min(max(similar, min_tokens // length), max(1, max_tokens // length), len(lengths) - first))
        yield first, rows, min(length, max_length)
        first += rows


def _size(count: int) -> int:
    """Return the smallest of the sizes that is at least `count`."""
    return _SIZES[bisect_left(_SIZES, count)]
