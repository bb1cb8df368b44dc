"""What a role makes of a model: how much of a text is read, and what is put before it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer

from edgeembed_exporters.options import Role
from edgeembed_exporters.source import take_apart

SEMANTIC_TOKENS = 128
"""As many as a semantic ranker reads: what texts are about shows early, and short texts are quick."""

# In the order in which sentence-transformers looks for them.
_DOCUMENT = ("document", "passage", "corpus")


@contextmanager
def in_role(
    model: SentenceTransformer, role: Role, *, max_seq_length: int | None = None, prompts: Mapping[str, str]
) -> Iterator[None]:
    """Let a model read and prompt as its role wants it, for as long as it is exported.

    For relevance, queries get the model's prompt for queries and passages that for documents, and as much is read as
    the model can. For semantic ranking all texts get the prompt for documents, since any two may be compared, and
    128 tokens are read. A bundle for both has the first.

    Args:
        model: The model; afterwards it is as it was.
        role: What it is to be used for.
        max_seq_length: How many tokens to read in place of the role's own; None for those.
        prompts: Prompts by name, in place of the role's own.

    Raises:
        InputError: If the model cannot read as many tokens.
    """
    before = model.prompts, model.default_prompt_name
    limit = take_apart(model).max_seq_length
    tokens = _tokens(role, limit, max_seq_length)
    model.prompts, model.default_prompt_name = _prompts(model, role, prompts)
    try:
        with _reading(model, tokens) if tokens < limit else nullcontext():
            yield
    finally:
        model.prompts, model.default_prompt_name = before


def _tokens(role: Role, limit: int, asked: int | None) -> int:
    if asked is None:
        return min(limit, SEMANTIC_TOKENS) if role == "semantic" else limit
    if not 3 <= asked <= limit:
        raise InputError(f"max_seq_length is {asked}; expected 3 to {limit} tokens, the most that the model reads")
    return asked


def _prompts(model: SentenceTransformer, role: Role, asked: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    known = {**{name: text for name, text in model.prompts.items() if text is not None}, **asked}
    default = model.default_prompt_name
    document = next((known[name] for name in _DOCUMENT if known.get(name)), "")
    if role != "semantic":
        return {"query": "", **known, "document": document}, default
    document = document or known.get(default or "", "")
    return {**known, "query": document, "document": document, **asked}, "document" if document else None


@contextmanager
def _reading(model: SentenceTransformer, tokens: int) -> Iterator[None]:
    first: Any = model[0]
    if type(first).__name__ == "StaticEmbedding":  # which has no limit of its own but its tokenizer's
        truncation = first.tokenizer.truncation
        first.tokenizer.enable_truncation(tokens)
        try:
            yield
        finally:
            first.tokenizer.no_truncation()
            if truncation:
                first.tokenizer.enable_truncation(**truncation)
        return
    before = first.max_seq_length
    first.max_seq_length = tokens
    try:
        yield
    finally:
        first.max_seq_length = before
