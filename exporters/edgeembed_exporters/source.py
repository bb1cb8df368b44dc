"""What a sentence-transformer is made of, as far as it can be exported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from torch import nn

POOLING_MODES = ("mean", "cls")


@dataclass(frozen=True)
class Source:
    """The parts of a model that go into a bundle.

    Attributes:
        encoder: The transformers encoder: input_ids, attention_mask -> last_hidden_state.
        tokenizer: Its fast transformers tokenizer.
        lower_case: Whether texts are lower-cased before they are tokenized.
        max_seq_length: The most tokens of a text that are read, special ones included.
        pooling: "mean" or "cls".
        modules: What follows the encoder: the pooling, then any Dense and Normalize modules.
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
        model: A loaded model: an encoder, a pooling, then any number of Dense and Normalize modules.

    Raises:
        InputError: If a part is not supported; it is named.
    """
    first, *modules = list(model)
    encoder = _encoder(first)
    pooling = _pooling(modules)
    width = int(encoder.config.hidden_size)
    return Source(
        encoder=encoder,
        tokenizer=_tokenizer(first),
        lower_case=bool(getattr(first, "do_lower_case", False)),
        max_seq_length=_max_seq_length(first, encoder),
        pooling=pooling,
        modules=tuple(modules),
        token_dimension=width,
        dimension=_dimension(modules[1:], width),
        prompts={name: text for name, text in model.prompts.items() if text is not None},
        default_prompt_name=model.default_prompt_name,
    )


def _encoder(first: nn.Module) -> Any:
    encoder = getattr(first, "auto_model", None)
    config = getattr(encoder, "config", None)
    if encoder is None or config is None:
        raise InputError(
            f"the first module is a {type(first).__name__}; expected one with a transformers encoder in auto_model"
        )
    if getattr(config, "is_encoder_decoder", False) or getattr(config, "is_decoder", False):
        raise InputError(
            f"the model is a {type(encoder).__name__}, a decoder; expected an encoder such as BERT or MPNet"
        )
    if not hasattr(config, "hidden_size"):
        raise InputError(f"the model is a {type(encoder).__name__}; expected a text encoder such as BERT or MPNet")
    return encoder


def _tokenizer(first: nn.Module) -> Any:
    tokenizer = getattr(first, "tokenizer", None)
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise InputError(f"the tokenizer is a {type(tokenizer).__name__}; expected a fast one, saved as tokenizer.json")
    return tokenizer


def _max_seq_length(first: nn.Module, encoder: nn.Module) -> int:
    given = getattr(first, "max_seq_length", None)
    room = position_limit(encoder)
    limits = [int(limit) for limit in (given, room) if limit is not None]
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


def _pooling(modules: list[nn.Module]) -> str:
    names = [type(module).__name__ for module in modules]
    if not names or names[0] != "Pooling":
        raise InputError(
            f"after the encoder comes {names[0] if names else 'nothing'}; "
            "expected Pooling, then any Dense and Normalize"
        )
    mode = modules[0].pooling_mode
    if mode not in POOLING_MODES:
        raise InputError(f"the pooling mode is {mode!r}; expected one of: {', '.join(POOLING_MODES)}")
    for name, module in zip(names[1:], modules[1:], strict=True):
        if name not in {"Dense", "Normalize"}:
            raise InputError(f"the model has a {name} module; expected only Dense and Normalize after Pooling")
        _check_reads_sentence(module, name)
    return str(mode)


def _check_reads_sentence(module: nn.Module, name: str) -> None:
    for side in ("module_input_name", "module_output_name"):
        given = getattr(module, side, None)
        if given not in {None, "sentence_embedding"}:
            raise InputError(f"a {name} module has {side} {given!r}; expected 'sentence_embedding'")


def _dimension(head: list[nn.Module], width: int) -> int:
    dense = [module for module in head if type(module).__name__ == "Dense"]
    return int(dense[-1].out_features) if dense else width  # type: ignore[arg-type]
