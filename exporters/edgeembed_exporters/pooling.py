"""Pooling as a graph does it: exact wherever the padding is."""

from collections.abc import Callable, Sequence

import torch
from torch import nn

Pool = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class MaskedPooling(nn.Module):
    """A text's vector from those of its tokens, as sentence-transformers gives it for the text alone.

    Its own module is not traced: the two generations weigh batches with padding on the left differently, and
    their graphs are as different as their code.

    Args:
        modes: Names in `POOLING_MODES`, or `sum`; the vectors of several are put one after the other.
    """

    def __init__(self, modes: Sequence[str]) -> None:
        super().__init__()
        self.modes = tuple(modes)

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Give the features with a sentence_embedding (batch, modes * width) among them.

        Args:
            features: token_embeddings (batch, tokens, width) and int64 attention_mask (batch, tokens).
        """
        tokens, mask = features["token_embeddings"], features["attention_mask"].unsqueeze(-1)
        pooled = [_POOLS[mode](tokens, mask) for mode in self.modes]
        return {**features, "sentence_embedding": torch.cat(pooled, dim=-1) if len(pooled) > 1 else pooled[0]}


# Each takes tokens (batch, tokens, width) and an int64 mask (batch, tokens, 1), and gives (batch, width); sums and
# counts rather than slices, so that padding on either side is left out, and no tokens give zeros.


def _first(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (tokens * (_places(mask) == 1)).sum(dim=1)


def _last(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (tokens * (_places(mask) == mask.sum(dim=1, keepdim=True))).sum(dim=1)


def _largest(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return tokens.masked_fill(mask == 0, torch.finfo(tokens.dtype).min).amax(dim=1)


def _sum(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (tokens * mask).sum(dim=1)


def _mean(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _sum(tokens, mask) / mask.sum(dim=1).clamp(min=1)


def _mean_by_root(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _sum(tokens, mask) / mask.sum(dim=1).clamp(min=1).sqrt()


def _weighted_mean(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _mean(tokens, _places(mask))


def _places(mask: torch.Tensor) -> torch.Tensor:
    """Count tokens from 1, padding being 0."""
    return mask.cumsum(dim=1) * mask


_OF_SENTENCE_TRANSFORMERS: dict[str, Pool] = {
    "mean": _mean,
    "cls": _first,
    "max": _largest,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}
POOLING_MODES = tuple(_OF_SENTENCE_TRANSFORMERS)
"""The names of sentence-transformers."""
_POOLS = {**_OF_SENTENCE_TRANSFORMERS, "sum": _sum}
_OF_ITS_DIRECTION = {"mean", "mean_sqrt_len_tokens"}


def modes_for_direction(modes: Sequence[str]) -> tuple[str, ...]:
    """Give pooling modes whose vectors have the same direction, and any length: a mean's is that of the sum."""
    return ("sum",) if len(modes) == 1 and modes[0] in _OF_ITS_DIRECTION else tuple(modes)
