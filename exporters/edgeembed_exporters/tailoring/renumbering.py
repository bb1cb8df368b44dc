"""A tokenizer with some of its tokens, numbered anew."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer


def with_tokens(described: dict[str, Any], inside: Sequence[str], outside: Sequence[str]) -> Tokenizer:
    """Give the tokenizer that keeps only some tokens: whatever names a token or its id follows.

    Args:
        described: The tokenizer as its JSON file says it; its parts are changed.
        inside: The tokens of the vocabulary, in their new order.
        outside: The added tokens that are no part of it, in their new order.
    """
    ids = {token: index for index, token in enumerate([*inside, *outside])}
    _cut_model(described["model"], inside)
    for token in described["added_tokens"]:
        token["id"] = ids[token["content"]]
    described["added_tokens"].sort(key=lambda token: token["id"])
    padding = described["padding"]
    if padding:
        padding["pad_id"] = ids.get(padding["pad_token"], padding["pad_id"])
    if described["post_processor"]:
        _renumber(described["post_processor"], ids)
    return Tokenizer.from_str(json.dumps(described))


def _cut_model(model: dict[str, Any], inside: Sequence[str]) -> None:
    if model["type"] == "Unigram":
        unknown = None if model["unk_id"] is None else model["vocab"][model["unk_id"]][0]
        scores = dict(model["vocab"])
        model["vocab"] = [[token, scores[token]] for token in inside]
        model["unk_id"] = None if unknown is None else inside.index(unknown)
        return
    model["vocab"] = {token: index for index, token in enumerate(inside)}
    if model["type"] == "BPE":
        prefix = model["continuing_subword_prefix"] or ""
        model["merges"] = [
            [first, second]
            for first, second in model["merges"]
            if {first, second, first + second.removeprefix(prefix)} <= model["vocab"].keys()
        ]


def _renumber(processor: dict[str, Any], ids: Mapping[str, int]) -> None:
    """Give a post-processor's special tokens their new ids, in each of the forms that tokenizers writes."""
    for name in ("sep", "cls"):
        if name in processor:  # BertProcessing, RobertaProcessing
            processor[name] = [processor[name][0], ids[processor[name][0]]]
    for special in processor.get("special_tokens", {}).values():  # TemplateProcessing
        special["ids"] = [ids[token] for token in special["tokens"]]
    for part in processor.get("processors", []):  # Sequence
        _renumber(part, ids)
