"""Torch modules that replace parts of a model before it is traced: exact pooling, static embeddings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers
from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

_HF: Any = transformers  # it has no types

# sentence-transformers reads static texts of any length. A bundle states a limit: that of the longest usual encoders.
_MAX_TOKENS = 8192

Pool = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class MaskedPooling(nn.Module):
    """Pools the token embeddings of a batch exactly as sentence-transformers pools a single text.

    The Pooling module of sentence-transformers is not traced, because versions 5 and 6 treat batches with padding on
    the left differently, and their graphs differ as much as their code.

    Args:
        modes: Names in `POOLING_MODES`, or `sum`; the embeddings of several are concatenated.
    """

    def __init__(self, modes: Sequence[str]) -> None:
        super().__init__()
        self.modes = tuple(modes)

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Add sentence_embedding (batch, modes * width) to the features.

        Args:
            features: token_embeddings (batch, tokens, width) and int64 attention_mask (batch, tokens).
        """
        tokens, mask = features["token_embeddings"], features["attention_mask"]
        pooled = [_POOLS[mode](tokens, mask) for mode in self.modes]
        return {**features, "sentence_embedding": torch.cat(pooled, dim=-1) if len(pooled) > 1 else pooled[0]}


def modes_for_direction(modes: Sequence[str]) -> tuple[str, ...]:
    """Return pooling modes whose embeddings have the same direction: a mean has that of the sum, which is cheaper."""
    return ("sum",) if len(modes) == 1 and modes[0] in _PARALLEL_TO_SUM else tuple(modes)


# Each function takes tokens (batch, tokens, width) and an int64 mask (batch, tokens), and returns (batch, width).
# They use sums and counts instead of slices, so that padding on either side has no effect, and no tokens result in 0.


def _cls(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _sum(tokens, _positions(mask) == 1)


def _last_token(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _sum(tokens, _positions(mask) == mask.sum(dim=1, keepdim=True))


def _max(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return tokens.masked_fill(mask[..., None] == 0, torch.finfo(tokens.dtype).min).amax(dim=1)


def _sum(tokens: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    # A matmul: ONNX Runtime's ReduceSum over tokens takes several times as long.
    return (weights[:, None].to(tokens.dtype) @ tokens).squeeze(1)


def _mean(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _sum(tokens, mask) / mask.sum(dim=1, keepdim=True).clamp(min=1)


def _mean_sqrt_length(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _sum(tokens, mask) / mask.sum(dim=1, keepdim=True).clamp(min=1).sqrt()


def _weighted_mean(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _mean(tokens, _positions(mask))


def _positions(mask: torch.Tensor) -> torch.Tensor:
    """Return the position of each token, counted from 1; padding is 0."""
    return mask.cumsum(dim=1) * mask


_SENTENCE_TRANSFORMERS_POOLS: dict[str, Pool] = {
    "mean": _mean,
    "cls": _cls,
    "max": _max,
    "mean_sqrt_len_tokens": _mean_sqrt_length,
    "weightedmean": _weighted_mean,
    "lasttoken": _last_token,
}
POOLING_MODES = tuple(_SENTENCE_TRANSFORMERS_POOLS)
"""The names that sentence-transformers uses."""
_POOLS = {**_SENTENCE_TRANSFORMERS_POOLS, "sum": _sum}
_PARALLEL_TO_SUM = {"mean", "mean_sqrt_len_tokens"}


class StaticEncoder(nn.Module):
    """An embedding table with the interface of a transformers encoder.

    Args:
        rows: float32 (vocabulary size, width).
    """

    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        count, width = rows.shape
        self.embeddings = nn.Embedding(count, width, _weight=rows.clone(), _freeze=True)
        self.config = layerless_config(count, width, _MAX_TOKENS)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        """Return the tokens' rows as last_hidden_state, (batch, tokens, width)."""
        del attention_mask  # only the pooling needs it
        return BaseModelOutput(last_hidden_state=self.embeddings(input_ids))


def read_static(module: Any) -> tuple[StaticEncoder, Any, int]:
    """Return the encoder, the transformers tokenizer and the maximum number of tokens of a static model.

    Args:
        module: A StaticEmbedding of sentence-transformers.

    Raises:
        InputError: If it does not compute the mean, or its tokenizer truncates at the left.
    """
    if module.embedding.mode != "mean":
        raise InputError(f"the StaticEmbedding computes the {module.embedding.mode} of its rows; expected the mean")
    content = json.loads(module.tokenizer.to_str())
    truncation = content["truncation"] or {"direction": "Right", "max_length": _MAX_TOKENS}
    if truncation["direction"] != "Right":
        raise InputError("the tokenizer truncates at the left; expected the right: keep the beginning of texts")
    content["post_processor"] = None  # it would add special tokens, which the module does not
    tokenizer = _with_padding(Tokenizer.from_str(json.dumps(content)))
    return StaticEncoder(module.embedding.weight.detach().float().cpu()), tokenizer, int(truncation["max_length"])


def layerless_config(vocabulary_size: int, width: int, max_seq_length: int) -> Any:
    """Return the configuration of a BERT without layers.

    transformers has no architecture for embedding tables, and other libraries need one: this is the closest.

    Args:
        vocabulary_size: Number of tokens.
        width: Dimension of a token embedding.
        max_seq_length: Maximum number of tokens of a text.
    """
    return _HF.BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=width,
        num_hidden_layers=0,
        num_attention_heads=1,
        intermediate_size=width,
        max_position_embeddings=max_seq_length,
    )


def _with_padding(tokenizer: Tokenizer) -> Any:
    # Any token can pad, because the mask excludes it, but other libraries need one to be named.
    special = [token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special]
    named = [name for name in special if "pad" in name.lower()]
    padding = [*named, *special, tokenizer.id_to_token(0)][0]
    return _HF.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=padding)
