"""A student built from a model: its last layers, and a token table that its own is cut down to."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from edgeembed.projection import low_rank
from edgeembed.recipe_settings import StudentSettings
from edgeembed.students.encoders import encoder_kind, heads_for, layers_of, neurons_of, positions_of, reshaped
from edgeembed.students.feed_forward import take_neurons
from edgeembed.students.transformer import CompactTransformer, FactorisedEmbedding, compact_encoder

_SPELLINGS = {
    "unk_token": ("[UNK]", "<unk>"),
    "sep_token": ("[SEP]", "</s>"),
    "pad_token": ("[PAD]", "<pad>"),
    "cls_token": ("[CLS]", "<s>"),
    "mask_token": ("[MASK]", "<mask>"),
}
"""How BERT, and RoBERTa and its kin, write special tokens."""


def build_student(
    source: SentenceTransformer,
    tokenizer: PreTrainedTokenizerBase,
    token_targets: torch.Tensor,
    token_weights: torch.Tensor,
    settings: StudentSettings,
    sentences: Sequence[str] = (),
) -> CompactTransformer:
    """Build a student's first module from the model that it starts from.

    The layers are that model's last ones (SimTDE, section 3). The token table and its projection are the best
    factorisation of the wanted token embeddings, tokens weighted by how often the corpus uses them; or random, as in
    the paper.

    Args:
        source: The model, usually the teacher.
        tokenizer: The student's tokenizer, as `student_tokenizer` gives it.
        token_targets: Wanted token embeddings, float32 (vocabulary, hidden size of the model).
        token_weights: How much each token matters, float32 (vocabulary,).
        settings: The student's shape.
        sentences: The text that it learns from, which tells what neurons matter where it has fewer.

    Returns:
        The module, its layers and everything beside them those of the model where it is as wide.

    Raises:
        InputError: If the model's architecture is not supported, or is smaller than asked for.
    """
    check_source(source, settings)
    theirs: PreTrainedModel = source[0].auto_model
    layers = settings.layers or len(layers_of(theirs))
    width = settings.hidden_size or theirs.config.hidden_size
    config = reshaped(
        theirs,
        layers=layers,
        hidden_size=width,
        dropout=settings.dropout,
        intermediate_size=settings.intermediate_size,
        attention_heads=settings.attention_heads,
    )
    config.vocab_size, config.pad_token_id = len(token_targets), tokenizer.pad_token_id
    encoder = compact_encoder(config, settings.token_dim)
    if width == theirs.config.hidden_size:
        _copy_weights(theirs, encoder)
        if settings.layer_init == "last":
            _copy_layers(source, encoder, sentences)
    if settings.table_init == "svd":
        _fill_table(encoder, token_targets, token_weights)
    return CompactTransformer(encoder, tokenizer, settings.token_dim, settings.max_seq_length)


def check_source(source: SentenceTransformer, settings: StudentSettings) -> None:
    """Refuse a model that a student of this shape cannot be made from.

    Raises:
        InputError: If the architecture is not supported, or is smaller than asked for.
    """
    if getattr(source[0], "do_lower_case", False):
        raise InputError(
            "the model folds case outside its tokenizer (do_lower_case); expected a tokenizer that does: "
            "give its tokenizer.json a Lowercase normalizer"
        )
    encoder = getattr(source[0], "auto_model", source[0])
    depth = len(layers_of(encoder))
    width = settings.hidden_size or encoder.config.hidden_size
    whose = f"student.source ({settings.source})" if settings.source else "the teacher"
    for name, given, most in (
        ("student.layers", settings.layers, depth),
        ("student.hidden_size", width, encoder.config.hidden_size),
        ("student.intermediate_size", settings.intermediate_size, neurons_of(encoder)),
        ("student.token_dim", settings.token_dim, width),
        ("student.max_seq_length", settings.max_seq_length, positions_of(encoder)),
    ):
        if given > most:
            raise InputError(f"{name} is {given}, but {whose} has only {most}; choose {most} or less")
    _check_heads(encoder.config, width, settings)


def _check_heads(config: Any, width: int, settings: StudentSettings) -> None:
    heads, wanted = config.num_attention_heads, settings.attention_heads
    keeps_layers = width == config.hidden_size and settings.layer_init == "last"
    if wanted not in {0, heads} and keeps_layers:
        raise InputError(f"student.attention_heads is {wanted}; expected {heads}, since the layers are the teacher's")
    if heads_for(config, width, wanted):
        return
    if wanted:
        raise InputError(f"student.attention_heads is {wanted}; expected a divisor of {width}, the layers' width")
    raise InputError(
        f"student.hidden_size is {width}; expected a multiple of {heads}, the teacher's attention heads, or of "
        f"{config.hidden_size // heads}, the width of one; or student.attention_heads"
    )


def student_tokenizer(
    tokenizer: Tokenizer, source: SentenceTransformer, kind: str, max_seq_length: int
) -> PreTrainedTokenizerBase:
    """Give a student's tokenizer in the form that transformers saves.

    Args:
        tokenizer: The vocabulary.
        source: The model that the student is made from.
        kind: Where the vocabulary comes from, as a recipe says it: "tailored", "trimmed", "teacher" or "file".
        max_seq_length: Longest input in tokens, special ones included.

    Raises:
        InputError: If the vocabulary has no padding token, or the model counts positions from its own, and the
            vocabulary has that elsewhere.
    """
    theirs: PreTrainedTokenizerBase = source[0].tokenizer
    if kind == "teacher":
        ours = copy.deepcopy(theirs)
        ours.model_max_length = max_seq_length
        return ours
    special: Mapping[str, Any] = theirs.special_tokens_map if kind == "trimmed" else _special_tokens(tokenizer)
    ours = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=max_seq_length,
        clean_up_tokenization_spaces=False,
        **{name: token for name, token in special.items() if isinstance(token, str)},
    )
    counts_from_padding = positions_of(source[0].auto_model) < source[0].auto_model.config.max_position_embeddings
    if counts_from_padding and ours.pad_token_id != theirs.pad_token_id:
        raise InputError(
            f"the {kind} vocabulary has {ours.pad_token} at {ours.pad_token_id}, but the model counts positions from "
            f"{theirs.pad_token_id}; expected it there: choose vocabulary.kind=teacher"
        )
    return ours


def _special_tokens(tokenizer: Tokenizer) -> dict[str, str]:
    found = {
        role: token
        for role, spellings in _SPELLINGS.items()
        for token in reversed(spellings)  # of two that there are, the first
        if tokenizer.token_to_id(token) is not None
    }
    if "pad_token" not in found:
        raise InputError(
            f"the vocabulary has no padding token; expected {' or '.join(_SPELLINGS['pad_token'])} among its tokens"
        )
    return found


def _copy_weights(source: PreTrainedModel, student: PreTrainedModel) -> None:
    """Copy what is beside layers and token table."""
    in_layers = {id(weight) for model in (source, student) for weight in layers_of(model).parameters()}
    tables = {id(weight) for model in (source, student) for weight in model.get_input_embeddings().parameters()}
    wanted = dict(student.named_parameters())
    with torch.no_grad():
        for name, weight in source.named_parameters():
            if name in wanted and id(weight) not in in_layers | tables:
                wanted[name].copy_(weight)


def _copy_layers(source: SentenceTransformer, student: PreTrainedModel, sentences: Sequence[str]) -> None:
    encoder: PreTrainedModel = source[0].auto_model
    ours, theirs = layers_of(student), layers_of(encoder)
    last = theirs[len(theirs) - len(ours) :]
    if neurons_of(student) < neurons_of(encoder):
        take_neurons(source, list(last), list(ours), encoder_kind(encoder).feed_forward, sentences)
        return
    for mine, other in zip(ours, last, strict=True):
        mine.load_state_dict(other.state_dict())


def _fill_table(encoder: PreTrainedModel, targets: torch.Tensor, weights: torch.Tensor) -> None:
    embedding: nn.Module = encoder.get_input_embeddings()
    with torch.no_grad():
        if isinstance(embedding, FactorisedEmbedding):
            table, projection = low_rank(targets, weights, embedding.table.embedding_dim)
            embedding.table.weight.copy_(table)
            if len(projection) == encoder.config.hidden_size:
                embedding.projection.weight.copy_(projection)
            else:  # layers of another width start at random: any turn is as good, and keeps the lengths
                nn.init.orthogonal_(embedding.projection.weight)
        else:
            width = encoder.config.hidden_size
            rows = targets if width == targets.shape[1] else low_rank(targets, weights, width)[0]
            encoder.get_input_embeddings().weight.copy_(rows)
