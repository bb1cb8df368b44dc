"""A model's table of token embeddings: found, cut, and its ids followed through the model's configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer
from torch import nn

from edgeembed_exporters.source import position_tables


def token_table(first: nn.Module) -> nn.Embedding | nn.EmbeddingBag:
    """Find the table that a model's first module looks tokens up in.

    It is that of a StaticEmbedding, or lies within the encoder's input embeddings: these may be a factorised
    table, narrow rows and the layer that widens them.

    Raises:
        InputError: If there is none, or more than one.
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


def cut_table(first: Any, table: nn.Embedding | nn.EmbeddingBag, rows: Sequence[int]) -> None:
    """Keep, in place, only some rows of a table, wherever the module uses it.

    Args:
        first: The module.
        table: Its table of token embeddings.
        rows: The rows to keep, in their new order.

    Raises:
        InputError: If a row is not there, or a language model's head uses the table too.
    """
    if max(rows) >= table.num_embeddings:
        raise InputError(
            f"the tokenizer has a token {max(rows)}, but the token table only {table.num_embeddings} rows; "
            "expected a row for every token"
        )
    old = table.weight
    new = nn.Parameter(old.detach()[list(rows)].clone(), requires_grad=old.requires_grad)
    for module in [module for module in first.modules() if getattr(module, "weight", None) is old]:
        if not isinstance(module, nn.Embedding | nn.EmbeddingBag):
            raise InputError(
                f"a {type(module).__name__} shares the token table; expected an encoder without such a head"
            )
        module.weight = new
        module.num_embeddings = len(rows)
        if module.padding_idx is not None:
            module.padding_idx = rows.index(module.padding_idx)
    if hasattr(first, "num_embeddings"):  # StaticEmbedding
        first.num_embeddings = len(rows)


def named_ids(first: nn.Module, table: nn.Embedding | nn.EmbeddingBag) -> set[int]:
    """Give the ids of tokens that a model names in its configuration or its table."""
    named = {table.padding_idx, *_token_ids(first).values()}
    return {index for index in named if index is not None}


def counted_ids(first: nn.Module) -> set[int]:
    """Give the ids of the padding from which RoBERTa and its kin count positions: it cannot move."""
    tables = position_tables(first)
    return {table.padding_idx for table in tables if table.padding_idx is not None}


def renumber_config(first: nn.Module, ids: Mapping[int, int]) -> None:
    """Give, in place, a configuration's tokens their new ids.

    Args:
        first: The module.
        ids: The new id of every old one that was kept.
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
    """Give the tokenizers tokenizer of a module.

    Raises:
        InputError: If it has none.
    """
    given: Any = getattr(first, "tokenizer", None)
    tokenizer = given if isinstance(given, Tokenizer) else getattr(given, "backend_tokenizer", None)
    if tokenizer is None:
        raise InputError(f"the tokenizer is a {type(given).__name__}; expected a fast one, saved as tokenizer.json")
    return tokenizer


def replace_tokenizer(first: Any, tokenizer: Tokenizer) -> None:
    """Give a module another tokenizer in place of its own, all else in the latter's wrapper staying as it is."""
    if isinstance(first.tokenizer, Tokenizer):
        first.tokenizer = tokenizer
        return
    first.tokenizer._tokenizer = tokenizer
    if getattr(first.tokenizer, "vocab_file", None):
        first.tokenizer.vocab_file = None  # a SentencePiece file would be saved as it was
