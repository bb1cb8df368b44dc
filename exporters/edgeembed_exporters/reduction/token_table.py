"""A model's embedding table: find it, select its rows, and renumber the ids in the model's configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer
from torch import nn

from edgeembed_exporters.model_spec import position_tables


def token_table(first: nn.Module) -> nn.Embedding | nn.EmbeddingBag:
    """Return the embedding table of a model's first module.

    It belongs to a StaticEmbedding, or to the encoder's input embeddings, which may be factorized: a narrow table
    and a linear layer.

    Raises:
        InputError: If there is no such table, or more than one.
    """
    bag = getattr(first, "embedding", None)
    if isinstance(bag, nn.EmbeddingBag):
        return bag
    encoder: Any = getattr(first, "auto_model", None)
    if encoder is None:
        raise InputError(
            f"the first module is a {type(first).__name__}; expected a transformers encoder or a StaticEmbedding"
        )
    size = encoder.config.vocab_size
    inputs = encoder.get_input_embeddings().modules()
    tables = [module for module in inputs if isinstance(module, nn.Embedding) and module.num_embeddings == size]
    if len(tables) != 1:
        raise InputError(
            f"the input embeddings hold {len(tables)} tables of {size} rows, the size of the vocabulary; expected one"
        )
    return tables[0]


def select_rows(first: Any, table: nn.Embedding | nn.EmbeddingBag, rows: Sequence[int]) -> None:
    """Keep only some rows of an embedding table, in place, wherever the module uses it.

    Args:
        first: The module.
        table: Its embedding table.
        rows: The rows to keep, in their new order.

    Raises:
        InputError: If a row does not exist, or the head of a language model shares the table.
    """
    if max(rows) >= table.num_embeddings:
        raise InputError(
            f"the tokenizer has a token {max(rows)}, but the embedding table only {table.num_embeddings} rows; "
            "expected a row for every token"
        )
    old = table.weight
    new = nn.Parameter(old.detach()[list(rows)].clone(), requires_grad=old.requires_grad)
    for module in [module for module in first.modules() if getattr(module, "weight", None) is old]:
        if not isinstance(module, nn.Embedding | nn.EmbeddingBag):
            raise InputError(
                f"a {type(module).__name__} shares the embedding table; expected an encoder without such a head"
            )
        module.weight = new
        module.num_embeddings = len(rows)
        if module.padding_idx is not None:
            module.padding_idx = rows.index(module.padding_idx)
    if hasattr(first, "num_embeddings"):  # StaticEmbedding
        first.num_embeddings = len(rows)


def configured_ids(first: nn.Module, table: nn.Embedding | nn.EmbeddingBag) -> set[int]:
    """Return the ids of tokens that a model's configuration or table refers to."""
    ids = {table.padding_idx, *_token_ids(first).values()}
    return {index for index in ids if index is not None}


def pinned_ids(first: nn.Module) -> set[int]:
    """Return the padding ids that must not change, because RoBERTa and related models count positions from them."""
    tables = position_tables(first)
    return {table.padding_idx for table in tables if table.padding_idx is not None}


def renumber_config(first: nn.Module, ids: Mapping[int, int]) -> None:
    """Replace the token ids in a model's configuration, in place.

    Args:
        first: The module.
        ids: New ids by old ids, of the tokens that were kept.
    """
    config = _config(first)
    if config is not None:
        config.vocab_size = len(ids)
        for name, index in _token_ids(first).items():
            setattr(config, name, ids.get(index))


def _token_ids(first: nn.Module) -> dict[str, int]:
    config = _config(first)
    given = {} if config is None else vars(config)
    return {name: index for name, index in given.items() if name.endswith("_token_id") and isinstance(index, int)}


def _config(first: nn.Module) -> Any:
    return getattr(getattr(first, "auto_model", None), "config", None)


def tokenizer_of(first: nn.Module) -> Tokenizer:
    """Return the tokenizer of a module, as an object of the tokenizers library.

    Raises:
        InputError: If it has no fast tokenizer.
    """
    given: Any = getattr(first, "tokenizer", None)
    tokenizer = given if isinstance(given, Tokenizer) else getattr(given, "backend_tokenizer", None)
    if tokenizer is None:
        raise InputError(f"the tokenizer is a {type(given).__name__}; expected a fast one, saved as tokenizer.json")
    return tokenizer


def replace_tokenizer(first: Any, tokenizer: Tokenizer) -> None:
    """Replace a module's tokenizer, in place, and keep the settings of the transformers tokenizer around it."""
    if isinstance(first.tokenizer, Tokenizer):
        first.tokenizer = tokenizer
        return
    first.tokenizer._tokenizer = tokenizer
    if getattr(first.tokenizer, "vocab_file", None):
        first.tokenizer.vocab_file = None  # a SentencePiece file would be saved as it was
