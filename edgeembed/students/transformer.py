"""A compact transformer student: narrow token table, projection, a teacher's last layers."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from edgeembed.students.padding import encoded_by_length
from edgeembed.students.tokenizing import TokenizingModule


class FactorisedEmbedding(nn.Module):
    """A token table of narrow rows and the projection that widens them (SimTDE, equation 2).

    Args:
        vocabulary_size: Number of rows.
        token_dim: Width of a row.
        hidden_size: Width that the encoder's layers expect.
    """

    def __init__(self, vocabulary_size: int, token_dim: int, hidden_size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary_size, token_dim)
        self.projection = nn.Linear(token_dim, hidden_size, bias=False)

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Give token embeddings of shape (..., hidden_size) for int64 ids of any shape."""
        embeddings: torch.Tensor = self.projection(self.table(token_ids))
        return embeddings


class CompactTransformer(TokenizingModule):
    """The first module of a student: text to token embeddings (SimTDE, section 3).

    Args:
        auto_model: A transformers encoder, as `compact_encoder` builds it.
        tokenizer: The student's tokenizer.
        token_dim: Width of the token table; 0 where it is as wide as the encoder.
        max_seq_length: Longest input in tokens, special ones included.
    """

    config_file_name = "compact_transformer.json"

    def __init__(
        self, auto_model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, token_dim: int, max_seq_length: int
    ) -> None:
        super().__init__(tokenizer, max_seq_length)
        self.auto_model = auto_model
        self.token_dim = token_dim
        self.gives_hidden_states = False

    def forward(self, features: dict[str, torch.Tensor], **_: Any) -> dict[str, torch.Tensor]:
        """Add float `token_embeddings` (batch, tokens, hidden_size) to the features.

        Where `gives_hidden_states` is set, also `all_layer_embeddings`: those before the first layer and after each.
        """
        ids, mask = features["input_ids"], features["attention_mask"]
        if self.gives_hidden_states:
            output = self.auto_model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
            features["token_embeddings"] = output.last_hidden_state
            features["all_layer_embeddings"] = output.hidden_states
        # Outside of training texts come sorted by length, and an exporter follows this code with one batch.
        elif self.training and self.tokenizer.padding_side == "right":
            features["token_embeddings"] = encoded_by_length(self._token_embeddings, ids, mask)
        else:
            features["token_embeddings"] = self._token_embeddings(ids, mask)
        return features

    def _token_embeddings(self, token_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        embeddings: torch.Tensor = self.auto_model(input_ids=token_ids, attention_mask=attention_mask).last_hidden_state
        return embeddings

    def get_embedding_dimension(self) -> int:
        """Give the width of a token embedding."""
        return int(self.auto_model.config.hidden_size)

    def get_config_dict(self) -> dict[str, Any]:
        """Return what `load` needs besides the weights and the tokenizer."""
        encoder = self.auto_model.config.to_dict()
        encoder.pop("_name_or_path", None)  # a path of the machine that the student was made on
        return {
            "token_dim": self.token_dim,
            "max_seq_length": self.max_seq_length,
            "encoder": encoder,
        }

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: Any) -> CompactTransformer:
        """Read a module that `save` wrote."""
        folder = os.path.join(model_name_or_path, subfolder)  # noqa: PTH118  # sentence-transformers gives strings
        settings = cls.load_config(folder)
        encoder = dict(settings["encoder"])
        config = AutoConfig.for_model(encoder.pop("model_type"), **encoder)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        module = cls(
            compact_encoder(config, settings["token_dim"]),
            tokenizer,
            settings["token_dim"],
            settings["max_seq_length"],
        )
        cls.load_torch_weights(folder, model=module)
        return module


def compact_encoder(config: Any, token_dim: int) -> PreTrainedModel:
    """Build an encoder of random weights, without a pooler.

    Args:
        config: A transformers configuration.
        token_dim: Width of the token table, which a projection widens; 0 for a table as wide as the encoder.
    """
    encoder = AutoModel.from_config(config)
    if token_dim:
        encoder.set_input_embeddings(FactorisedEmbedding(config.vocab_size, token_dim, config.hidden_size))
        nn.init.normal_(encoder.get_input_embeddings().table.weight, std=config.initializer_range)
    encoder.pooler = None
    return encoder
