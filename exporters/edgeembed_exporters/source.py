"""What a sentence-transformer is made of, as far as it can be exported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn
from transformers.models.auto import modeling_auto

from edgeembed_exporters.matrices.graph import MatrixEncoder
from edgeembed_exporters.matrices.tensors import is_matrix_student, read_matrices
from edgeembed_exporters.pooling import POOLING_MODES
from edgeembed_exporters.static import read_static

# transformers' own lists: what is trained to write on, and not to fill gaps as encoders are, reads to the left only.
_DECODERS = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.keys() - modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES

_MOST_TOKENS = 2**20
# How sentence-transformers says that texts go in as they are, and vectors of tokens come out.
_TEXT = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
_HEAD = ("Dense", "LayerNorm", "Normalize")


@dataclass(frozen=True)
class Source:
    """The parts of a model that go into a bundle.

    Attributes:
        encoder: The transformers encoder, or what stands in its place: input_ids, attention_mask -> last_hidden_state.
        tokenizer: Its fast transformers tokenizer.
        lower_case: Whether texts are lower-cased before they are tokenized.
        max_seq_length: The most tokens of a text that are read, special ones included.
        pooling: How token vectors become one, such as "mean", or "cls+mean" for two put together.
        modules: What follows the encoder: the pooling, then any Dense, LayerNorm and Normalize modules.
        token_dimension: Width of a token's vector.
        dimension: Width of a sentence's vector.
        prompts: Texts that are put before a text, by name.
        default_prompt_name: The prompt used where none is asked for.
    """

    encoder: Any
    tokenizer: Any
    lower_case: bool
    max_seq_length: int
    pooling: str
    modules: tuple[nn.Module, ...]
    token_dimension: int
    dimension: int
    prompts: dict[str, str]
    default_prompt_name: str | None


def take_apart(model: SentenceTransformer) -> Source:
    """Give the parts of a model, once it is known that all of them can be exported.

    Args:
        model: A loaded model: an encoder and a pooling, or a StaticEmbedding; then any number of Dense, LayerNorm
            and Normalize modules.

    Raises:
        InputError: If a part is not supported; it is named.
    """
    _check_kind(model)
    first, *rest = list(model)
    encoder: Any
    if is_matrix_student(first):
        tokenizer, limit = _tokenizer(first), int(first.max_seq_length)
        encoder = MatrixEncoder(read_matrices([first]), limit)
        modules = [Pooling(encoder.config.hidden_size, "mean"), *rest]
    elif type(first).__name__ == "StaticEmbedding":
        encoder, tokenizer, limit = read_static(first)
        modules = [Pooling(encoder.config.hidden_size, "mean"), *rest]
    else:
        encoder, tokenizer, modules = _encoder(first), _tokenizer(first), rest
        limit = _max_seq_length(first, encoder)
    pooling = _pooling(modules, model.prompts)
    width = int(encoder.config.hidden_size)
    return Source(
        encoder=encoder,
        tokenizer=tokenizer,
        lower_case=bool(getattr(first, "do_lower_case", False)),
        max_seq_length=limit,
        pooling="+".join(pooling),
        modules=tuple(modules),
        token_dimension=width,
        dimension=_dimension(modules[1:], width * len(pooling)),
        prompts={name: text for name, text in model.prompts.items() if text is not None},
        default_prompt_name=model.default_prompt_name,
    )


def pooling_modes(pooling: nn.Module) -> tuple[str, ...]:
    """Give the names of the ways in which a Pooling module makes one vector of many."""
    modes: Any = pooling.pooling_mode
    return (modes,) if isinstance(modes, str) else tuple(modes)


def _check_kind(model: SentenceTransformer) -> None:
    if not isinstance(model, SentenceTransformer) or not len(model):
        raise InputError(f"the model is a {type(model).__name__}; expected a SentenceTransformer with modules")
    if model.truncate_dim is not None:
        raise InputError(
            f"the model cuts its vectors to truncate_dim {model.truncate_dim}; expected whole ones: set "
            "model.truncate_dim to None, and give it a head of fewer dimensions instead"
        )


def _encoder(first: nn.Module) -> Any:
    encoder = getattr(first, "auto_model", None)
    if getattr(encoder, "config", None) is None:
        raise InputError(
            f"the first module is a {type(first).__name__}; expected one with a transformers encoder in auto_model, "
            "or a StaticEmbedding"
        )
    _check_encoder(encoder)
    reads = getattr(first, "modality_config", _TEXT)
    if reads != _TEXT:
        raise InputError(f"the {type(first).__name__} module reads {reads}; expected plain text: {_TEXT}")
    return encoder


def _check_encoder(encoder: Any) -> None:
    name, config = type(encoder).__name__, encoder.config
    trained_as = next(iter(getattr(config, "architectures", None) or ()), name)
    if trained_as.endswith("ForSequenceClassification"):
        raise InputError(
            f"the model is a {trained_as}, a cross encoder or a classifier; expected one that gives vectors"
        )
    writes = any(getattr(config, kind, False) for kind in ("is_decoder", "is_encoder_decoder"))
    if writes or getattr(config, "model_type", None) in _DECODERS:
        raise InputError(f"the model is a {name}, a decoder; expected an encoder such as BERT or MPNet")
    if not hasattr(config, "hidden_size"):
        raise InputError(f"the model is a {name}; expected a text encoder such as BERT or MPNet")


def _tokenizer(first: nn.Module) -> Any:
    tokenizer: Any = getattr(first, "tokenizer", None)
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise InputError(f"the tokenizer is a {type(tokenizer).__name__}; expected a fast one, saved as tokenizer.json")
    for side in ("padding_side", "truncation_side"):
        if getattr(tokenizer, side, "right") != "right":
            raise InputError(f"the tokenizer's {side} is {getattr(tokenizer, side)!r}; expected 'right': set it so")
    return tokenizer


def _max_seq_length(first: nn.Module, encoder: nn.Module) -> int:
    given = getattr(first, "max_seq_length", None)
    room = position_limit(encoder)
    limits = [int(limit) for limit in (given, room) if limit is not None and limit <= _MOST_TOKENS]
    if not limits:
        raise InputError("the model states no max_seq_length; expected one: set model.max_seq_length")
    return min(limits)


def position_limit(encoder: nn.Module) -> int | None:
    """Give the most tokens for which an encoder has learned positions; None where it has no such table."""
    limits = [int(table.num_embeddings) - first_position(table) for table in position_tables(encoder)]
    return min(limits, default=None)


def position_tables(encoder: nn.Module) -> Iterator[nn.Embedding]:
    """Give the tables of learned positions, as transformers names them."""
    for name, module in encoder.named_modules():
        if name.rpartition(".")[2] == "position_embeddings" and isinstance(module, nn.Embedding):
            yield module


def first_position(table: nn.Embedding) -> int:
    """Give the row of the first token: RoBERTa and its kin begin to count after the padding's row."""
    return 0 if table.padding_idx is None else int(table.padding_idx) + 1


def _pooling(modules: Sequence[nn.Module], prompts: dict[str, str]) -> tuple[str, ...]:
    names = [type(module).__name__ for module in modules]
    if not names or names[0] != "Pooling":
        raise InputError(
            f"after the encoder comes {names[0] if names else 'nothing'}; "
            "expected Pooling, then any Dense, LayerNorm and Normalize"
        )
    modes = pooling_modes(modules[0])
    for mode in modes:
        if mode not in POOLING_MODES:
            raise InputError(f"the pooling mode is {mode!r}; expected of: {', '.join(POOLING_MODES)}")
    if not modules[0].include_prompt and any(prompts.values()):
        raise InputError(
            "the Pooling module has include_prompt false; expected true, or no prompts: a graph cannot tell a "
            "prompt's tokens from the text's"
        )
    for name, module in zip(names[1:], modules[1:], strict=True):
        if name not in _HEAD:
            raise InputError(f"the model has a {name} module; expected only {', '.join(_HEAD)} after Pooling")
        _check_reads_sentence(module, name)
    return modes


def _check_reads_sentence(module: nn.Module, name: str) -> None:
    for side in ("module_input_name", "module_output_name"):
        given = getattr(module, side, None)
        if given not in {None, "sentence_embedding"}:
            raise InputError(f"a {name} module has {side} {given!r}; expected 'sentence_embedding'")


def _dimension(head: Sequence[nn.Module], width: int) -> int:
    dense = [module for module in head if type(module).__name__ == "Dense"]
    return int(dense[-1].out_features) if dense else width  # type: ignore[arg-type]
