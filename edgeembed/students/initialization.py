"""Initialize a student's first module from a source model: layers, embedding table, tokenizer."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from edgeembed_exporters.reduction.tokenizer_trimming import move_token
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from edgeembed.architectures import (
    choose_attention_heads,
    encoder_architecture,
    encoder_layers,
    ffn_width,
    max_positions,
    resized_config,
)
from edgeembed.students.ffn_pruning import copy_pruned_layers
from edgeembed.students.settings import StudentSettings
from edgeembed.students.token_table import TokenTable
from edgeembed.students.transformer import CompactTransformer, FactorizedEmbedding, build_encoder

_SPECIAL_TOKENS = {
    "unk_token": ("[UNK]", "<unk>"),
    "sep_token": ("[SEP]", "</s>"),
    "pad_token": ("[PAD]", "<pad>"),
    "cls_token": ("[CLS]", "<s>"),
    "mask_token": ("[MASK]", "<mask>"),
}
"""Spellings of each special token: BERT's, then RoBERTa's."""


def build_transformer(
    source: SentenceTransformer,
    tokenizer: PreTrainedTokenizerBase,
    token_targets: torch.Tensor,
    token_weights: torch.Tensor,
    settings: StudentSettings,
    sentences: Sequence[str] = (),
) -> CompactTransformer:
    """Build a transformer student's first module, initialized from a source model.

    The layers are copies of the source's last layers (SimTDE, Xie et al. 2023, section 3). The embedding table and its
    projection are the best low-rank factorization of the target embeddings, tokens weighted by frequency
    (`table_init = "svd"`), or random, as in the paper.

    Args:
        source: The model to start from, usually the teacher.
        tokenizer: The student's tokenizer, as `student_tokenizer` returns it.
        token_targets: Target embedding of each token, float32 (vocabulary, hidden size of the source).
        token_weights: Weight of each token in the factorization, float32 (vocabulary,).
        settings: Sizes of the student.
        sentences: Training text, needed to prune the FFNs if they are to be narrower than the source's.

    Returns:
        The module. A student whose hidden size differs from the source's keeps random layers.

    Raises:
        InputError: If the source's architecture is not supported or the source is too small.
    """
    check_source_model(source, settings)
    source_encoder: PreTrainedModel = source[0].auto_model
    hidden_size = settings.hidden_size or source_encoder.config.hidden_size
    config = resized_config(
        source_encoder,
        layers=settings.layers or len(encoder_layers(source_encoder)),
        hidden_size=hidden_size,
        dropout=settings.dropout,
        intermediate_size=settings.intermediate_size,
        attention_heads=settings.attention_heads,
    )
    config.vocab_size, config.pad_token_id = len(token_targets), tokenizer.pad_token_id
    encoder = build_encoder(config, settings.token_dim)
    if hidden_size == source_encoder.config.hidden_size:
        _copy_other_weights(source_encoder, encoder)
        if settings.layer_init == "last":
            _copy_layers(source, encoder, sentences)
    if settings.table_init == "svd":
        _fill_table(encoder, token_targets, token_weights)
    return CompactTransformer(encoder, tokenizer, settings.token_dim, settings.max_seq_length, settings.table_bits)


def check_source_model(source: SentenceTransformer, settings: StudentSettings) -> None:
    """Check that a student of these sizes can be initialized from a model.

    Raises:
        InputError: If the model's architecture is not supported or it is smaller than the student.
    """
    encoder = getattr(source[0], "auto_model", source[0])
    depth = len(encoder_layers(encoder))
    hidden_size = settings.hidden_size or encoder.config.hidden_size
    name = f"student.source ({settings.source})" if settings.source else "the teacher"
    for setting, value, most in (
        ("student.layers", settings.layers, depth),
        ("student.hidden_size", hidden_size, encoder.config.hidden_size),
        ("student.intermediate_size", settings.intermediate_size, ffn_width(encoder)),
        ("student.token_dim", settings.token_dim, encoder.config.hidden_size),
        ("student.max_seq_length", settings.max_seq_length, max_positions(encoder)),
    ):
        if value > most:
            raise InputError(f"{setting} is {value}, but {name} has only {most}; choose {most} or less")
    _check_attention_heads(encoder.config, hidden_size, settings, name)


def _check_attention_heads(config: Any, hidden_size: int, settings: StudentSettings, source_name: str) -> None:
    heads, requested = config.num_attention_heads, settings.attention_heads
    copies_layers = hidden_size == config.hidden_size and settings.layer_init == "last"
    if requested not in {0, heads} and copies_layers:
        raise InputError(
            f"student.attention_heads is {requested}; expected {heads}, since the layers are copied from {source_name}"
        )
    if choose_attention_heads(config, hidden_size, requested):
        return
    if requested:
        raise InputError(
            f"student.attention_heads is {requested}; expected a divisor of {hidden_size}, the hidden size"
        )
    raise InputError(
        f"student.hidden_size is {hidden_size}; expected a multiple of {heads}, the attention heads of {source_name}, "
        f"or of {config.hidden_size // heads}, the width of a head: or set student.attention_heads"
    )


def student_tokenizer(
    tokenizer: Tokenizer, source: SentenceTransformer, kind: str, max_seq_length: int
) -> PreTrainedTokenizerBase:
    """Wrap a student's vocabulary in a transformers tokenizer.

    Args:
        tokenizer: The vocabulary.
        source: The model that the student is initialized from.
        kind: The recipe's `vocabulary.kind`: "trained", "trimmed", "teacher" or "file".
        max_seq_length: Maximum number of tokens, special tokens included.

    Raises:
        InputError: If the vocabulary has no padding token.
    """
    source_tokenizer: PreTrainedTokenizerBase = source[0].tokenizer
    if kind == "teacher":
        wrapped = copy.deepcopy(source_tokenizer)
        wrapped.model_max_length = max_seq_length
        return wrapped
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=source_tokenizer.model_input_names,
        model_max_length=max_seq_length,
        clean_up_tokenization_spaces=False,
        **_special_tokens(tokenizer, source, kind),
    )


def with_padding_of(source: SentenceTransformer, tokenizer: Tokenizer, kind: str) -> Tokenizer:
    """Return a student's vocabulary with the padding token at the source's id, if the source numbers positions from it.

    RoBERTa and its descendants do so.

    Args:
        source: The model that the student is initialized from.
        tokenizer: The vocabulary.
        kind: The recipe's `vocabulary.kind`: "trained", "trimmed" or "file".

    Raises:
        InputError: If the vocabulary has no padding token, or fewer tokens than this id.
    """
    if not encoder_architecture(source[0].auto_model).position_offset:
        return tokenizer
    token, index = _special_tokens(tokenizer, source, kind)["pad_token"], source[0].tokenizer.pad_token_id
    return tokenizer if tokenizer.token_to_id(token) == index else move_token(tokenizer, token, index)


def _special_tokens(tokenizer: Tokenizer, source: SentenceTransformer, kind: str) -> dict[str, str]:
    """Return the special tokens of a student's vocabulary by role: "pad_token" and others."""
    if kind == "trimmed":
        given: Mapping[str, Any] = source[0].tokenizer.special_tokens_map
        return {role: token for role, token in given.items() if isinstance(token, str)}
    found = {
        role: token
        for role, spellings in _SPECIAL_TOKENS.items()
        for token in reversed(spellings)  # the first spelling wins if the vocabulary has both
        if tokenizer.token_to_id(token) is not None
    }
    if "pad_token" not in found:
        raise InputError(
            "the vocabulary has no padding token; expected "
            f"{' or '.join(_SPECIAL_TOKENS['pad_token'])} among its tokens"
        )
    return found


def _copy_other_weights(source: PreTrainedModel, student: PreTrainedModel) -> None:
    """Copy the weights outside the layers and the embedding table (positions, token types, layer norms)."""
    models = (source, student)
    in_layers = {id(weight) for model in models for weight in encoder_layers(model).parameters()}
    in_tables = {id(weight) for model in models for weight in model.get_input_embeddings().parameters()}
    student_weights = dict(student.named_parameters())
    with torch.no_grad():
        for name, weight in source.named_parameters():
            if name in student_weights and id(weight) not in in_layers | in_tables:
                student_weights[name].copy_(weight)


def _copy_layers(source: SentenceTransformer, student: PreTrainedModel, sentences: Sequence[str]) -> None:
    encoder: PreTrainedModel = source[0].auto_model
    student_layers, source_layers = encoder_layers(student), encoder_layers(encoder)
    last = source_layers[len(source_layers) - len(student_layers) :]
    if ffn_width(student) < ffn_width(encoder):
        paths = encoder_architecture(encoder).feed_forward
        copy_pruned_layers(source, list(last), list(student_layers), paths, sentences)
        return
    for student_layer, source_layer in zip(student_layers, last, strict=True):
        student_layer.load_state_dict(source_layer.state_dict())


def _fill_table(encoder: PreTrainedModel, targets: torch.Tensor, weights: torch.Tensor) -> None:
    embedding: nn.Module = encoder.get_input_embeddings()
    with torch.no_grad():
        if isinstance(embedding, FactorizedEmbedding):
            table, projection = low_rank(targets, weights, embedding.table.embedding_dim)
            embedding.table.weight.copy_(table)
            if len(projection) == encoder.config.hidden_size:
                embedding.projection.weight.copy_(projection)
            else:  # the layers are random then: any orthogonal projection is as good, and preserves lengths
                nn.init.orthogonal_(embedding.projection.weight)
        else:
            width = encoder.config.hidden_size
            rows = targets if width == targets.shape[1] else low_rank(targets, weights, width)[0]
            encoder.get_input_embeddings().weight.copy_(rows)


def fill_vectors(table: TokenTable, targets: torch.Tensor, weights: torch.Tensor) -> None:
    """Start a table of vectors at the best low-rank factorization of target embeddings, in place.

    Args:
        table: The table.
        targets: Target embedding of each token, float32 (vocabulary, width).
        weights: Weight of each token in the factorization, float32 (vocabulary,).
    """
    count = min(table.weight.shape[1], targets.shape[1])
    with torch.no_grad():
        table.weight[:, :count] = low_rank(targets, weights, count)[0]
        if table.basis is not None:
            torch.nn.init.eye_(table.basis)


def low_rank(rows: torch.Tensor, weights: torch.Tensor, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the best weighted low-rank factorization of a table.

    Minimizes the sum of `weights * |row - narrow @ wide.T|^2` (Eckart and Young 1936): `wide` holds the right singular
    vectors of the weighted rows, `narrow` the coordinates of every row in them.

    Args:
        rows: float32 (n, width).
        weights: Non-negative weight of each row, float32 (n,).
        rank: Width of the narrow rows, at most `width`.

    Returns:
        The narrow rows, float32 (n, rank), and the wide matrix, float32 (width, rank), with orthonormal columns.
    """
    weighted = rows.double() * weights.double().sqrt()[:, None]
    _, components = torch.linalg.eigh(weighted.T @ weighted)
    wide = components[:, -rank:].flip(1)
    return (rows.double() @ wide).float(), wide.float()
