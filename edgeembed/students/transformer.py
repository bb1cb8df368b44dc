"""A compact transformer student: narrow token table, projection, a teacher's last layers."""

from __future__ import annotations

import os
from typing import Any

import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers.base.modules import InputModule
from tokenizers import Tokenizer
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from edgeembed.projection import low_rank


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


class CompactTransformer(InputModule):  # type: ignore[misc]  # sentence-transformers carries no types
    """The first module of a student: text to token embeddings (SimTDE, section 3).

    Args:
        auto_model: A transformers encoder whose input embedding is a `FactorisedEmbedding`.
        tokenizer: The student's tokenizer.
        token_dim: Width of the token table.
        max_seq_length: Longest input in tokens, special ones included.
    """

    config_file_name = "compact_transformer.json"
    save_in_root = True

    def __init__(
        self, auto_model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, token_dim: int, max_seq_length: int
    ) -> None:
        super().__init__()
        self.auto_model = auto_model
        self.tokenizer = tokenizer
        self.token_dim = token_dim
        self.max_seq_length = max_seq_length

    def preprocess(self, inputs: list[str], prompt: str | None = None, **_: Any) -> dict[str, torch.Tensor]:
        """Tokenize texts, padded to the longest: int64 `input_ids` and `attention_mask` (batch, tokens)."""
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

    def forward(self, features: dict[str, torch.Tensor], **_: Any) -> dict[str, torch.Tensor]:
        """Add float `token_embeddings` (batch, tokens, hidden_size) to the features."""
        output = self.auto_model(input_ids=features["input_ids"], attention_mask=features["attention_mask"])
        features["token_embeddings"] = output.last_hidden_state
        return features

    def get_embedding_dimension(self) -> int:
        """Give the width of a token embedding."""
        return int(self.auto_model.config.hidden_size)

    def get_config_dict(self) -> dict[str, Any]:
        """Give what `load` needs besides the weights and the tokenizer."""
        return {
            "token_dim": self.token_dim,
            "max_seq_length": self.max_seq_length,
            "encoder": self.auto_model.config.to_dict(),
        }

    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Write weights, configuration and tokenizer into a folder."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)
        self.tokenizer.save_pretrained(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: Any) -> CompactTransformer:
        """Read a module that `save` wrote."""
        folder = os.path.join(model_name_or_path, subfolder)  # noqa: PTH118  # sentence-transformers gives strings
        settings = cls.load_config(folder)
        encoder = dict(settings["encoder"])
        config = AutoConfig.for_model(encoder.pop("model_type"), **encoder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        module = cls(
            factorised_encoder(config, settings["token_dim"]),
            tokenizer,
            settings["token_dim"],
            settings["max_seq_length"],
        )
        cls.load_torch_weights(folder, model=module)
        return module

    @classmethod
    def from_teacher(  # the choices that make a student
        cls,
        teacher: PreTrainedModel,
        tokenizer: Tokenizer,
        token_targets: torch.Tensor,
        *,
        token_weights: torch.Tensor,
        token_dim: int,
        layers: int,
        max_seq_length: int,
        dropout: float,
    ) -> CompactTransformer:
        """Build a student from a teacher's last layers and a low-rank token table.

        The layers are the teacher's last ones (SimTDE, section 3). The table and its projection are the best
        factorisation of the wanted token embeddings, tokens weighted by how often the corpus uses them.

        Args:
            teacher: The teacher's transformers encoder, with its layers in `encoder.layer`.
            tokenizer: The student's tokenizer.
            token_targets: Wanted token embeddings, float32 (vocabulary, hidden_size).
            token_weights: How much each token matters, float32 (vocabulary,).
            token_dim: Width of the token table.
            layers: How many of the teacher's last layers to take.
            max_seq_length: Longest input in tokens.
            dropout: Dropout while training.

        Returns:
            The student's first module.

        Raises:
            InputError: If the teacher's architecture is not supported or is smaller than asked for.
        """
        check_teacher(teacher, layers=layers, token_dim=token_dim, max_seq_length=max_seq_length)
        config = type(teacher.config).from_dict(teacher.config.to_dict())
        config.num_hidden_layers = layers
        config.vocab_size = tokenizer.get_vocab_size()
        config.pad_token_id = tokenizer.token_to_id("[PAD]")
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout
        encoder = factorised_encoder(config, token_dim)
        _copy_layers(teacher, encoder, layers)
        embedding = encoder.get_input_embeddings()
        table, projection = low_rank(token_targets, token_weights, token_dim)
        with torch.no_grad():
            embedding.table.weight.copy_(table)
            embedding.projection.weight.copy_(projection)
        return cls(encoder, _fast_tokenizer(tokenizer, max_seq_length), token_dim, max_seq_length)


def check_teacher(teacher: PreTrainedModel, *, layers: int, token_dim: int, max_seq_length: int) -> None:
    """Refuse a teacher that a student of this shape cannot be made from.

    Raises:
        InputError: If the architecture is not supported or is smaller than asked for.
    """
    depth = len(getattr(getattr(teacher, "encoder", None), "layer", ()))
    if not depth:
        raise InputError(
            f"the teacher is a {type(teacher).__name__}; expected an encoder with layers in encoder.layer, "
            "such as BERT, RoBERTa, XLM-RoBERTa or MPNet"
        )
    config = teacher.config
    positions = getattr(config, "max_position_embeddings", max_seq_length)
    for name, given, most in (
        ("student.layers", layers, depth),
        ("student.token_dim", token_dim, config.hidden_size),
        ("student.max_seq_length", max_seq_length, positions),
    ):
        if given > most:
            raise InputError(f"{name} is {given}, but the teacher has only {most}; choose {most} or less")


def factorised_encoder(config: Any, token_dim: int) -> PreTrainedModel:
    """Build an encoder of random weights whose input embedding is factorised.

    Args:
        config: A transformers configuration.
        token_dim: Width of the token table.

    Returns:
        The encoder, without a pooler.
    """
    encoder = AutoModel.from_config(config)
    encoder.set_input_embeddings(FactorisedEmbedding(config.vocab_size, token_dim, config.hidden_size))
    encoder.pooler = None
    return encoder


def _copy_layers(teacher: PreTrainedModel, student: PreTrainedModel, layers: int) -> None:
    first = len(teacher.encoder.layer) - layers
    with torch.no_grad():
        for index, layer in enumerate(student.encoder.layer):
            layer.load_state_dict(teacher.encoder.layer[first + index].state_dict())
        wanted = dict(student.named_parameters())
        for name, weight in teacher.named_parameters():
            if not name.startswith("encoder.layer.") and name in wanted and "word_embeddings" not in name:
                wanted[name].copy_(weight)


def _fast_tokenizer(tokenizer: Tokenizer, max_seq_length: int) -> PreTrainedTokenizerBase:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=max_seq_length,
        unk_token="[UNK]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        mask_token="[MASK]",
        clean_up_tokenization_spaces=False,
    )
