"""Inspect a sentence-transformers model: the parts that an export needs, and whether it supports them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, LayerNorm, Normalize, Pooling, StaticEmbedding
from torch import nn
from transformers.models.auto import modeling_auto

from edgeembed_exporters.cmow import MatrixEncoder, is_matrix_student, read_matrices
from edgeembed_exporters.modules import POOLING_MODES, read_static

# Architectures that transformers trains as language models but not as masked ones read only to the left.
_DECODERS = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.keys() - modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES

_MAX_TOKENS = 2**20
_MASK_TOKENS = 1024
# How sentence-transformers describes a module that reads plain text and returns token embeddings.
_TEXT = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
_HEAD_MODULES = (Dense, LayerNorm, Normalize)


@dataclass(frozen=True)
class ModelSpec:
    """The parts of a model that an export reads. It holds references: nothing in it may be changed.

    Attributes:
        encoder: The transformers encoder, or a module with the same interface: input_ids, attention_mask ->
            last_hidden_state.
        tokenizer: Its fast transformers tokenizer.
        max_seq_length: Maximum number of tokens read from a text, including special tokens.
        pooling: The pooling of token embeddings, such as "mean", or "cls+mean" for two that are concatenated.
        modules: The modules after the encoder: the pooling, then any Dense, LayerNorm and Normalize modules.
        token_dimension: Dimension of a token embedding.
        dimension: Dimension of a sentence embedding.
        prompts: Prefixes of texts, by name.
        default_prompt_name: The prompt used if the caller asks for none.
    """

    encoder: Any
    tokenizer: Any
    max_seq_length: int
    pooling: str
    modules: tuple[nn.Module, ...]
    token_dimension: int
    dimension: int
    prompts: dict[str, str]
    default_prompt_name: str | None


def inspect_model(model: SentenceTransformer) -> ModelSpec:
    """Return the parts of a model, after checking that all of them can be exported.

    Args:
        model: An encoder and a pooling, a matrix student, or a StaticEmbedding; then any Dense, LayerNorm and
            Normalize modules.

    Raises:
        InputError: If a part is not supported; the message names it.
    """
    _check_type(model)
    first, *rest = list(model)
    encoder: Any
    if is_matrix_student(first):
        tokenizer, limit = _tokenizer(first), int(first.max_seq_length)
        encoder = MatrixEncoder(read_matrices([first]), limit)
        modules = [Pooling(encoder.config.hidden_size, "mean"), *rest]
    elif isinstance(first, StaticEmbedding):
        encoder, tokenizer, limit = read_static(first)
        modules = [Pooling(encoder.config.hidden_size, "mean"), *rest]
    else:
        encoder, tokenizer, modules = _encoder(first), _tokenizer(first), rest
        limit = _max_seq_length(first, encoder)
    pooling = _check_head(modules, model.prompts)
    width = int(encoder.config.hidden_size)
    return ModelSpec(
        encoder=encoder,
        tokenizer=tokenizer,
        max_seq_length=limit,
        pooling="+".join(pooling),
        modules=tuple(modules),
        token_dimension=width,
        dimension=_dimension(modules[1:], width * len(pooling)),
        prompts={name: text for name, text in model.prompts.items() if text is not None},
        default_prompt_name=model.default_prompt_name,
    )


def check_token_rows(spec: ModelSpec) -> None:
    """Raise InputError if the tokenizer has tokens that the encoder has no embedding for."""
    rows = int(spec.encoder.config.vocab_size)
    missing = [token for token, index in spec.tokenizer.get_vocab().items() if index >= rows]
    if missing:
        raise InputError(
            f"the tokenizer has tokens without a row in the embedding table of {rows:,} rows ({len(missing):,}), such "
            f"as {min(missing)!r}; expected a row for each: call resize_token_embeddings on the encoder, or remove them"
        )


def pooling_modes(pooling: nn.Module) -> tuple[str, ...]:
    """Return the modes of a Pooling module; the embeddings of several are concatenated."""
    modes: Any = pooling.pooling_mode
    return (modes,) if isinstance(modes, str) else tuple(modes)


def check_attention(spec: ModelSpec) -> None:
    """Check that an encoder attends to texts of all lengths in the same way, as a graph does.

    Raises:
        InputError: If it reads long texts with block-sparse attention, as BigBird, and has texts that are long enough.
    """
    config = spec.encoder.config
    if getattr(config, "attention_type", None) != "block_sparse":
        return
    full = (5 + 2 * config.num_random_blocks) * config.block_size  # as transformers decides
    if spec.max_seq_length > full:
        raise InputError(
            f"the encoder's attention_type is 'block_sparse', which a graph cannot have, and it reads up to "
            f"{spec.max_seq_length} tokens; expected a max_seq_length of at most {full}, up to which its attention is "
            "full, or the attention_type 'original_full' in its config.json"
        )


def mask_tokens(spec: ModelSpec) -> int:
    """Return the length of a text on which each of an encoder's attention masks shows what it hides.

    It is the maximum length, but masks of thousands of tokens take gigabytes, so no longer than a sliding window needs.
    """
    windows = [size for name, size in vars(spec.encoder.config).items() if "window" in name and isinstance(size, int)]
    return min(spec.max_seq_length, max([_MASK_TOKENS, *(2 * size for size in windows)]))


def position_limit(encoder: nn.Module) -> int | None:
    """Return the number of tokens for which an encoder has learned positions; None if it has no such table."""
    limits = [int(table.num_embeddings) - first_position(table) for table in position_tables(encoder)]
    return min(limits, default=None)


def position_tables(encoder: nn.Module) -> Iterator[nn.Embedding]:
    """Yield the tables of learned positions, by the name that transformers gives them."""
    for name, module in encoder.named_modules():
        if name.rpartition(".")[2] == "position_embeddings" and isinstance(module, nn.Embedding):
            yield module


def first_position(table: nn.Embedding) -> int:
    """Return the row of the first token. RoBERTa and related models count from the row after the padding's."""
    return 0 if table.padding_idx is None else int(table.padding_idx) + 1


def _check_type(model: SentenceTransformer) -> None:
    if not isinstance(model, SentenceTransformer) or not len(model):
        raise InputError(f"the model is a {type(model).__name__}; expected a SentenceTransformer with modules")
    if model.truncate_dim is not None:
        raise InputError(
            f"the model truncates its embeddings to truncate_dim {model.truncate_dim}; expected None: set "
            "model.truncate_dim to None, and reduce the dimension with a PCA head instead"
        )


def _encoder(first: nn.Module) -> Any:
    encoder = getattr(first, "auto_model", None)
    if getattr(encoder, "config", None) is None:
        raise InputError(
            f"the first module is a {type(first).__name__}; expected one with a transformers encoder in auto_model, "
            "or a StaticEmbedding"
        )
    _check_encoder(encoder)
    modalities = getattr(first, "modality_config", _TEXT)
    if modalities != _TEXT:
        raise InputError(f"the {type(first).__name__} module reads {modalities}; expected plain text: {_TEXT}")
    return encoder


def _check_encoder(encoder: Any) -> None:
    name, config = type(encoder).__name__, encoder.config
    trained_as = next(iter(getattr(config, "architectures", None) or ()), name)
    if trained_as.endswith("ForSequenceClassification"):
        raise InputError(
            f"the model is a {trained_as}, a cross encoder or a classifier; expected one that returns embeddings"
        )
    is_decoder = any(getattr(config, kind, False) for kind in ("is_decoder", "is_encoder_decoder"))
    if is_decoder or getattr(config, "model_type", None) in _DECODERS:
        raise InputError(
            f"the model is a {name}, of an architecture that generates text; expected an encoder such as BERT or MPNet"
        )
    if not hasattr(config, "hidden_size"):
        raise InputError(f"the model is a {name}; expected a text encoder such as BERT or MPNet")


def _tokenizer(first: nn.Module) -> Any:
    tokenizer: Any = getattr(first, "tokenizer", None)
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise InputError(f"the tokenizer is a {type(tokenizer).__name__}; expected a fast one, saved as tokenizer.json")
    for side in ("padding_side", "truncation_side"):
        if getattr(tokenizer, side, "right") != "right":
            raise InputError(
                f"the tokenizer's {side} is {getattr(tokenizer, side)!r}; expected 'right': set it in "
                "tokenizer_config.json, or as an attribute of the loaded model's tokenizer"
            )
    return tokenizer


def _max_seq_length(first: nn.Module, encoder: nn.Module) -> int:
    limits = [getattr(first, "max_seq_length", None), position_limit(encoder)]
    known = [int(limit) for limit in limits if limit is not None and limit <= _MAX_TOKENS]
    if not known:
        raise InputError("the model has no max_seq_length; expected one: set model.max_seq_length")
    return min(known)


def _check_head(modules: Sequence[nn.Module], prompts: dict[str, str]) -> tuple[str, ...]:
    """Check the modules after the encoder, and return the pooling modes."""
    if not modules or not isinstance(modules[0], Pooling):
        raise InputError(
            f"the module after the encoder is {type(modules[0]).__name__ if modules else 'missing'}; "
            "expected Pooling, then any Dense, LayerNorm and Normalize"
        )
    pooling, *head = modules
    modes = pooling_modes(pooling)
    for mode in modes:
        if mode not in POOLING_MODES:
            raise InputError(f"the pooling mode is {mode!r}; expected one of: {', '.join(POOLING_MODES)}")
    if not pooling.include_prompt and any(prompts.values()):
        raise InputError(
            "the Pooling module has include_prompt false; expected true, or no prompts: a graph cannot tell a "
            "prompt's tokens from the text's"
        )
    for module in head:
        if not isinstance(module, _HEAD_MODULES):
            names = ", ".join(supported.__name__ for supported in _HEAD_MODULES)
            raise InputError(f"the model has a {type(module).__name__} module; expected only {names} after Pooling")
        _check_feature_names(module)
    return modes


def _check_feature_names(module: nn.Module) -> None:
    for side in ("module_input_name", "module_output_name"):
        given = getattr(module, side, None)
        if given not in {None, "sentence_embedding"}:
            raise InputError(f"a {type(module).__name__} module has {side} {given!r}; expected 'sentence_embedding'")


def _dimension(head: Sequence[nn.Module], width: int) -> int:
    dense: list[Any] = [module for module in head if isinstance(module, Dense)]
    return int(dense[-1].out_features) if dense else width
