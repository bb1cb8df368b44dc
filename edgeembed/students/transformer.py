"""Transformer students: the tokenizing base class, their embedding tables, and the encoder module."""

from __future__ import annotations

import os
from typing import Any

import torch
from sentence_transformers.base.modules import InputModule
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from edgeembed.hardware import default_device
from edgeembed.students.length_groups import encode_by_length


class TokenizerModule(InputModule):  # type: ignore[misc]  # sentence-transformers is untyped
    """Base class of first modules: tokenizes text and saves the tokenizer with the weights.

    Args:
        tokenizer: The student's tokenizer.
        max_seq_length: Maximum number of tokens, special tokens included; longer texts are truncated.
    """

    save_in_root = True

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_seq_length: int) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.max_seq_length = max_seq_length

    def preprocess(self, inputs: list[str], prompt: str | None = None, **_: Any) -> dict[str, torch.Tensor]:
        """Tokenize texts and pad them to the longest.

        Args:
            inputs: Texts.
            prompt: Text to put before each of them.

        Returns:
            int64 `input_ids` and `attention_mask`, each of shape (batch, tokens).
        """
        texts = [prompt + text for text in inputs] if prompt else list(inputs)
        encoded = self.tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self.max_seq_length,
            return_tensors="pt",
            return_token_type_ids=False,
        )
        return dict(encoded)

    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Save weights, configuration and tokenizer to a folder."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)
        self.tokenizer.save_pretrained(output_path)


class FactorizedEmbedding(nn.Module):
    """Embedding table of narrow rows with a projection to the encoder's width (SimTDE, Xie et al. 2023, equation 2).

    Attributes:
        table_bits: Bits per value to which the rows of the table are rounded; 0 for none.

    Args:
        vocabulary_size: Number of rows.
        token_dim: Width of a row.
        hidden_size: Width of the encoder's layers.
    """

    def __init__(self, vocabulary_size: int, token_dim: int, hidden_size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary_size, token_dim)
        self.projection = nn.Linear(token_dim, hidden_size, bias=False)
        self.table_bits = 0

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Return the embeddings of token ids: int64 of any shape (...) -> float (..., hidden_size)."""
        rows: torch.Tensor = self.table(token_ids)
        if self.table_bits:
            rows = _rounded_in_training(rows, self.table_bits)
        embeddings: torch.Tensor = self.projection(rows)
        return embeddings

    @torch.no_grad()
    def fix_rounded_rows(self) -> None:
        """Replace the rows of the table by those that they are rounded to, which are final."""
        self.table.weight.copy_(round_rows(self.table.weight, self.table_bits))
        self.table_bits = 0


class RoundedEmbedding(nn.Module):
    """Embedding table, with or without a projection, whose output is rounded to few bits per value.

    Args:
        embedding: The embedding to round: int64 of any shape (...) -> float (..., width).
        bits: Bits per value.
    """

    def __init__(self, embedding: nn.Module, bits: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.bits = bits

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Return the rounded embeddings of token ids: int64 of any shape (...) -> float32 (..., width)."""
        return _rounded_in_training(self.embedding(token_ids).float(), self.bits)

    @torch.no_grad()
    def as_table(self, vocabulary_size: int) -> nn.Embedding:
        """Return the same embeddings as one plain table, float32 (vocabulary_size, width)."""
        token_ids = torch.arange(vocabulary_size, device=next(self.parameters()).device)
        rows = round_rows(self.embedding(token_ids).float(), self.bits)
        return nn.Embedding(len(rows), rows.shape[1], _weight=rows)


def round_rows(rows: torch.Tensor, bits: int) -> torch.Tensor:
    """Round each row to `2**bits` evenly spaced levels, the lowest of which is the value of largest magnitude.

    These are the levels of 4-bit tables in ONNX Runtime, so that the export stores rounded rows without loss.

    Args:
        rows: float32 (..., width).
        bits: Bits per value.
    """
    largest = rows.gather(-1, rows.abs().argmax(dim=-1, keepdim=True))
    lowest = -(2 ** (bits - 1))
    scales = torch.where(largest == 0, 1.0, largest) / lowest  # negative if the largest value is positive
    rounded: torch.Tensor = (rows / scales).round().clamp(lowest, -lowest - 1) * scales
    return rounded


def _rounded_in_training(rows: torch.Tensor, bits: int) -> torch.Tensor:
    """Round rows, with a gradient as if they were not rounded (straight-through estimator, Bengio et al. 2013)."""
    return rows + (round_rows(rows.detach(), bits) - rows.detach())


class CompactTransformer(TokenizerModule):
    """Transformer encoder as the first module of a student: text -> token embeddings (SimTDE, section 3).

    Attributes:
        output_hidden_states: Whether `forward` also returns the hidden states of all layers, for losses that
            compare layers. False after loading.

    Args:
        auto_model: A transformers encoder, as `build_encoder` returns it.
        tokenizer: The student's tokenizer.
        token_dim: Width of the factorized embedding table; 0 for a plain table.
        max_seq_length: Maximum number of tokens, special tokens included.
        table_bits: Bits per value to which token embeddings are rounded; 0 for none.
    """

    config_file_name = "compact_transformer.json"

    def __init__(
        self,
        auto_model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        token_dim: int,
        max_seq_length: int,
        table_bits: int = 0,
    ) -> None:
        super().__init__(tokenizer, max_seq_length)
        self.auto_model = auto_model
        self.token_dim = token_dim
        self.table_bits = table_bits
        if table_bits:
            _round_table(auto_model, table_bits)
        self.output_hidden_states = False

    def forward(self, features: dict[str, torch.Tensor], **_: Any) -> dict[str, torch.Tensor]:
        """Add float `token_embeddings` (batch, tokens, hidden_size) to the features.

        If `output_hidden_states` is set, also add `all_layer_embeddings`: the input of the first layer and the output
        of each layer, as in transformers.
        """
        ids, mask = features["input_ids"], features["attention_mask"]
        if self.output_hidden_states:
            output = self.auto_model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
            features["token_embeddings"] = output.last_hidden_state
            features["all_layer_embeddings"] = output.hidden_states
        # Only in training: `encode` sorts texts by length already, and tracing must see one batch.
        elif self.training and self.tokenizer.padding_side == "right":
            features["token_embeddings"] = encode_by_length(self._token_embeddings, ids, mask, self.max_seq_length)
        else:
            features["token_embeddings"] = self._token_embeddings(ids, mask)
        return features

    def _token_embeddings(self, token_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        embeddings: torch.Tensor = self.auto_model(input_ids=token_ids, attention_mask=attention_mask).last_hidden_state
        return embeddings

    def fold_rounded_table(self) -> None:
        """Replace rows by those that they are rounded to, which are final; fold a projection that is rounded."""
        embedding = self.auto_model.get_input_embeddings()
        if isinstance(embedding, RoundedEmbedding):
            self.auto_model.set_input_embeddings(embedding.as_table(self.auto_model.config.vocab_size))
            self.token_dim = 0
        elif isinstance(embedding, FactorizedEmbedding) and embedding.table_bits:
            embedding.fix_rounded_rows()
        self.table_bits = 0

    def get_embedding_dimension(self) -> int:
        """Return the width of a token embedding."""
        return int(self.auto_model.config.hidden_size)

    def get_config_dict(self) -> dict[str, Any]:
        """Return what `load` needs besides the weights and the tokenizer."""
        encoder = self.auto_model.config.to_dict()
        encoder.pop("_name_or_path", None)  # a path on the machine that trained the student
        return {
            "token_dim": self.token_dim,
            "max_seq_length": self.max_seq_length,
            "table_bits": self.table_bits,
            "encoder": encoder,
        }

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: Any) -> CompactTransformer:
        """Load a module that `save` wrote."""
        folder = os.path.join(model_name_or_path, subfolder)  # noqa: PTH118  # sentence-transformers passes strings
        settings = cls.load_config(folder)
        encoder = dict(settings["encoder"])
        config = AutoConfig.for_model(encoder.pop("model_type"), **encoder)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        module = cls(
            build_encoder(config, settings["token_dim"]),
            tokenizer,
            settings["token_dim"],
            settings["max_seq_length"],
            settings.get("table_bits", 0),
        )
        cls.load_torch_weights(folder, model=module)
        return module


def _round_table(auto_model: PreTrainedModel, bits: int) -> None:
    """Round the rows of an encoder's table if they are narrower than its layers, else its token embeddings."""
    embedding = auto_model.get_input_embeddings()
    if isinstance(embedding, FactorizedEmbedding) and embedding.table.embedding_dim < auto_model.config.hidden_size:
        embedding.table_bits = bits
    else:
        auto_model.set_input_embeddings(RoundedEmbedding(embedding, bits))


def build_encoder(config: Any, token_dim: int) -> PreTrainedModel:
    """Build an encoder with random weights and without a pooler.

    Args:
        config: A transformers configuration.
        token_dim: Width of the factorized embedding table; 0 for a plain table as wide as the encoder.
    """
    # On a CPU torch's fused attention loops over the heads in its backward pass, and its other one computes in float32.
    attention = "eager" if default_device() == "cpu" else None
    encoder = AutoModel.from_config(config, attn_implementation=attention)
    if token_dim:
        encoder.set_input_embeddings(FactorizedEmbedding(config.vocab_size, token_dim, config.hidden_size))
        nn.init.normal_(encoder.get_input_embeddings().table.weight, std=config.initializer_range)
    encoder.pooler = None
    return encoder
