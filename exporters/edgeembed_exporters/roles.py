"""Adapt a model to the role of its bundle: how many tokens are read, and which prompts are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from edgeembed_exporters.bundle_settings import BundleSettings, Role
from edgeembed_exporters.model_spec import ModelSpec
from edgeembed_exporters.settings import spelled
from edgeembed_exporters.soundness import copy_sharing_weights

SEMANTIC_TOKENS = 128
"""The tokens that a semantic ranker reads: the topic of a text shows early, and short inputs are fast."""

_MIN_TOKENS = 3
# In the order in which sentence-transformers looks for the prompt of documents.
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


def in_role(spec: ModelSpec, settings: BundleSettings) -> ModelSpec:
    """Return a model's spec with the maximum length and the prompts of a role.

    For relevance, queries get the model's prompt for queries and documents its prompt for documents, and the model's
    maximum length is read. For semantic ranking, which may compare any two texts, all texts get the prompt for
    documents, and 128 tokens are read. A bundle for both roles is as for relevance.

    Raises:
        InputError: If the model cannot read `max_seq_length` tokens.
    """
    prompts, default = _prompts(spec, settings.role, settings.prompts)
    length = _max_seq_length(spec.max_seq_length, settings.role, settings.max_seq_length)
    return replace(spec, max_seq_length=length, prompts=prompts, default_prompt_name=default)


def private_copy(model: SentenceTransformer, prompts: Mapping[str, str]) -> SentenceTransformer:
    """Return a copy of a model that shares its weights, so that the caller's prompts and limits stay as they are.

    Args:
        model: The caller's model.
        prompts: Prompts by name; they replace the model's.
    """
    made = copy_sharing_weights(model)
    made.prompts = {**made.prompts, **prompts}
    return made


def apply_role(model: SentenceTransformer, spec: ModelSpec, model_limit: int) -> None:
    """Let a model encode, in place, with the maximum length and the prompts of a spec.

    Args:
        model: A private copy.
        spec: The spec in its role.
        model_limit: Maximum number of tokens that the model itself reads.
    """
    model.prompts, model.default_prompt_name = spec.prompts, spec.default_prompt_name
    if spec.max_seq_length >= model_limit:
        return
    first: Any = model[0]
    if isinstance(first, StaticEmbedding):  # its only limit is the tokenizer's
        first.tokenizer.enable_truncation(spec.max_seq_length)
    else:
        first.max_seq_length = spec.max_seq_length


def _max_seq_length(limit: int, role: Role, asked: int | None) -> int:
    if asked is None:
        return min(limit, SEMANTIC_TOKENS) if role == "semantic" else limit
    if not _MIN_TOKENS <= asked <= limit:
        raise InputError(
            f"{spelled('max_seq_length')} is {asked}; expected {_MIN_TOKENS} to {limit} tokens, the model's maximum"
        )
    return asked


def _prompts(spec: ModelSpec, role: Role, asked: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    known = {**spec.prompts, **asked}
    default = spec.default_prompt_name
    document = next((known[name] for name in _DOCUMENT_PROMPTS if known.get(name)), "")
    if role != "semantic":
        return {"query": "", **known, "document": document}, default
    document = document or known.get(default or "", "")
    return {**known, "query": document, "document": document, **asked}, "document" if document else None
