"""What a tokenizer's tokens are made of: which are special, what spells a word, what one is merged from."""

import json
import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer, pre_tokenizers

from edgeembed_exporters.tailoring.encodings import description

KINDS = ("WordPiece", "BPE", "Unigram")
"""Tokenizers that cut a word they do not know into pieces; WordLevel has none to cut it into."""


class Pieces:
    """The tokens of a tokenizer.

    Args:
        tokenizer: A WordPiece, BPE or Unigram tokenizer.

    Attributes:
        described: The tokenizer as its JSON file says it.
        ids: Every token's id.
        inside: The tokens of the vocabulary proper; those that were added later lie outside.
        special: Tokens that are kept whatever the text: special, added, unknown, and the frame of a text.

    Raises:
        InputError: If the tokenizer is of another kind.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.described = description(tokenizer)
        self.ids: dict[str, int] = tokenizer.get_vocab()
        model = self.described["model"]
        if model["type"] not in KINDS:
            raise InputError(
                f"the tokenizer is a {model['type']} tokenizer; expected one of: {', '.join(KINDS)}; "
                "choose a model whose tokenizer cuts words into pieces"
            )
        self.inside: set[str] = set(_tokens(model))
        self.special: set[str] = _special_tokens(self.described) & self.ids.keys()
        self._tokenizer = tokenizer
        self._prefix: str = model.get("continuing_subword_prefix") or ""
        self._suffix: str = model.get("end_of_word_suffix") or ""
        self._ranks = {tuple(pair): rank for rank, pair in enumerate(model.get("merges", ()))}
        self._merged = {self._merge(*pair) for pair in self._ranks}

    def alphabet(self, tokens: Iterable[str]) -> set[str]:
        """Give the tokens that spell every word of the characters that occur in some tokens.

        They are the characters alone, as a continuation and as an end; all bytes where the tokenizer works on
        bytes or falls back to them; and tokens of characters that have no token of their own.
        """
        tokens = set(tokens) - _FALLBACK_BYTES
        characters = {character for token in tokens for character in self._surface(token)} | self._byte_characters()
        affixes = [(before, after) for before in {"", self._prefix} for after in {"", self._suffix}]
        forms = {before + character + after for character in characters for before, after in affixes}
        unspelled = {token for token in tokens if not self.ids.keys() >= set(self._spell(token))}
        return (forms | _FALLBACK_BYTES) & self.inside | unspelled

    def origins(self, token: str) -> set[str]:
        """Give a token and, in BPE, those that are merged on the way to it."""
        parts = self._spell(token)
        found = {token}
        while self._ranks:
            found.update(parts)
            pairs = list(pairwise(parts))
            first = min(range(len(pairs)), key=lambda i: self._ranks.get(pairs[i], math.inf), default=None)
            if first is None or pairs[first] not in self._ranks:
                break
            parts[first : first + 2] = [self._merge(*pairs[first])]
        return found & self.ids.keys()

    def is_reachable(self, token: str) -> bool:
        """Tell whether any text can give the token: `[unused7]` and folded capitals never come out."""
        kind, surface = self.described["model"]["type"], self._surface(token)
        if kind == "BPE":
            return len(surface) == 1 or token in self._merged
        if kind == "Unigram":
            return [piece.value for piece in self._tokenizer.model.tokenize(token)] == [token]
        normaliser, splitter = self._tokenizer.normalizer, self._tokenizer.pre_tokenizer
        normalised = normaliser.normalize_str(surface) if normaliser else surface
        words = splitter.pre_tokenize_str(normalised) if splitter else [(surface, (0, 0))]
        return normalised == surface and len(words) == 1

    def _merge(self, first: str, second: str) -> str:
        return first + second.removeprefix(self._prefix)

    def _surface(self, token: str) -> str:
        return token.removeprefix(self._prefix).removesuffix(self._suffix)

    def _spell(self, token: str) -> list[str]:
        """Give the characters that a token is made of, as its vocabulary writes them; itself if it has none."""
        surface = self._surface(token)
        if not surface:
            return [token]
        symbols = [self._prefix + character for character in surface]
        if not token.startswith(self._prefix):
            symbols[0] = surface[0]
        if token.endswith(self._suffix):
            symbols[-1] += self._suffix
        return symbols

    def _byte_characters(self) -> set[str]:
        cut = json.dumps([self.described["normalizer"], self.described["pre_tokenizer"]])
        return set(pre_tokenizers.ByteLevel.alphabet()) if '"ByteLevel"' in cut else set()


_FALLBACK_BYTES = {f"<0x{byte:02X}>" for byte in range(256)}


def _tokens(model: dict[str, Any]) -> list[str]:
    vocabulary = model["vocab"]
    return [token for token, _ in vocabulary] if model["type"] == "Unigram" else list(vocabulary)


def _special_tokens(described: dict[str, Any]) -> set[str]:
    model = described["model"]
    special = {token["content"] for token in described["added_tokens"]}
    if model.get("unk_token") is not None:
        special.add(model["unk_token"])
    if model.get("unk_id") is not None:  # Unigram names it by id
        special.add(model["vocab"][model["unk_id"]][0])
    if described["padding"]:
        special.add(described["padding"]["pad_token"])
    return special | _frame(described["post_processor"] or {})


def _frame(processor: dict[str, Any]) -> set[str]:
    """Give the tokens that a post-processor sets around a text, in each of the forms that tokenizers writes."""
    tokens = {processor[name][0] for name in ("sep", "cls") if name in processor}  # BertProcessing, RobertaProcessing
    for special in processor.get("special_tokens", {}).values():  # TemplateProcessing
        tokens.update(special["tokens"])
    return tokens.union(*(_frame(part) for part in processor.get("processors", [])))  # Sequence
