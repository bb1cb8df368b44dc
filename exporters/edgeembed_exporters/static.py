"""Static models: a table of token vectors, and the mean of a text's rows."""

from __future__ import annotations

import json
from typing import Any

import torch
import transformers
from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from edgeembed_exporters.layerless import layerless_config

_HF: Any = transformers  # it carries no types

# sentence-transformers reads texts of any length. A bundle states a limit: the longest that encoders usually have.
_MOST_TOKENS = 8192


class StaticEncoder(nn.Module):
    """A table of token vectors in the place of a transformers encoder.

    Args:
        rows: float32 (vocabulary, width).
    """

    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        count, width = rows.shape
        self.embeddings = nn.Embedding(count, width, _weight=rows.clone(), _freeze=True)
        self.config = layerless_config(count, width, _MOST_TOKENS)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        """Give the tokens' rows as last_hidden_state, (batch, tokens, width)."""
        del attention_mask  # the pooling reads it
        return BaseModelOutput(last_hidden_state=self.embeddings(input_ids))


def read_static(module: Any) -> tuple[StaticEncoder, Any, int]:
    """Give the encoder, the transformers tokenizer and the most tokens that a text is read of.

    Args:
        module: sentence-transformers' StaticEmbedding.

    Raises:
        InputError: If it does not take the mean of all rows of a text's beginning.
    """
    if module.embedding.mode != "mean":
        raise InputError(f"the StaticEmbedding takes the {module.embedding.mode} of its rows; expected the mean")
    content = json.loads(module.tokenizer.to_str())
    truncation = content["truncation"] or {"direction": "Right", "max_length": _MOST_TOKENS}
    if truncation["direction"] != "Right":
        raise InputError("the tokenizer truncates at the left; expected the right: keep the beginnings of texts")
    content["post_processor"] = None  # it would add the special tokens that the module leaves out
    tokenizer = _with_padding(Tokenizer.from_str(json.dumps(content)))
    return StaticEncoder(module.embedding.weight.detach().float().cpu()), tokenizer, int(truncation["max_length"])


def _with_padding(tokenizer: Tokenizer) -> Any:
    # The mask leaves out what pads, so any token will do; programs want one to be named.
    names = [token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special]
    named = [name for name in names if "pad" in name.lower()]
    padding = [*named, *names, tokenizer.id_to_token(0)][0]
    return _HF.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=padding)
