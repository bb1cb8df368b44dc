"""Trim a tokenizer to the tokens that a text needs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer, pre_tokenizers

from edgeembed_exporters.reduction.coverage import encode_all, tokenizer_json

_SUBWORD_MODELS = ("WordPiece", "BPE", "Unigram")
_BYTE_FALLBACK_TOKENS = {f"<0x{byte:02X}>" for byte in range(256)}


def trim_tokenizer(
    tokenizer: Tokenizer,
    sentences: Iterable[str],
    *,
    size: int | None = None,
    keep: Collection[int] = (),
    pinned: Collection[int] = (),
) -> Tokenizer:
    """Return a tokenizer that keeps only the tokens that a corpus needs.

    It keeps special and added tokens; the tokens that spell any word of the corpus's characters, so that a word whose
    token was removed is split into pieces and does not become the unknown token; then the tokens that occur in the
    tokenized corpus, and in BPE the tokens that these are merged from. Tokens keep their strings, which identify their
    rows in the model's embedding table.

    Args:
        tokenizer: A WordPiece, BPE or Unigram tokenizer; it is not changed.
        sentences: The corpus; one batch of it is in memory at a time.
        size: Vocabulary size, including special tokens. The most frequent tokens are kept; if the corpus uses fewer,
            tokens with the lowest ids are added. None keeps every token that the corpus uses, and no other.
        keep: Ids of further tokens to keep.
        pinned: Ids of tokens to keep under the same id.

    Returns:
        A tokenizer that is otherwise the same. Special tokens come first, then the others, each in the original order;
        added tokens outside the vocabulary come last, as tokenizers requires.

    Raises:
        InputError: If the tokenizer is of another kind, there is no text, `size` is too small for the tokens that are
            always kept, or a pinned token cannot keep its id.
    """
    return trim_to_counts(tokenizer, count_tokens(tokenizer, sentences), size=size, keep=keep, pinned=pinned)


def count_tokens(tokenizer: Tokenizer, sentences: Iterable[str]) -> Counter[str]:
    """Return how often each token occurs in a tokenized corpus, of which one batch is in memory at a time."""
    counts: Counter[int] = Counter()
    for encoding in encode_all(tokenizer, sentences):
        counts.update(encoding.ids)
    names = _names(tokenizer)
    return Counter({names[index]: count for index, count in counts.items()})


def _names(tokenizer: Tokenizer) -> dict[int, str]:
    """Return the token of each id."""
    return {index: token for token, index in tokenizer.get_vocab().items()}


def trim_to_counts(
    tokenizer: Tokenizer,
    counts: Counter[str],
    *,
    size: int | None = None,
    keep: Collection[int] = (),
    pinned: Collection[int] = (),
) -> Tokenizer:
    """Return a tokenizer that keeps only the tokens that a corpus needs, as `trim_tokenizer` describes.

    Args:
        tokenizer: As for `trim_tokenizer`, and so are the other arguments and the errors.
        counts: What `count_tokens` returns for the corpus.
        size: Vocabulary size.
        keep: Ids of further tokens to keep.
        pinned: Ids of tokens to keep under the same id.
    """
    tokens = _SubwordTokens(tokenizer)
    if not counts:
        raise InputError("there is no text to trim a vocabulary to; expected at least one word")
    names = _names(tokenizer)
    required = _required(tokens, counts, {names[index] for index in {*keep, *pinned} if index in names})
    if size is not None and size < len(required):
        raise InputError(
            f"the vocabulary size is {size}; expected at least {len(required)} for this corpus: "
            f"{len(tokens.special)} special tokens and {len(required - tokens.special)} characters and other tokens "
            "that are always kept"
        )
    kept = _fill(tokens, counts, required, size)
    vocabulary = _pin(_sort(tokens, kept & tokens.vocabulary), {index: names.get(index) for index in pinned})
    return _with_tokens(tokens.content, vocabulary, _sort(tokens, kept - tokens.vocabulary))


def move_token(tokenizer: Tokenizer, token: str, index: int) -> Tokenizer:
    """Return a tokenizer in which a token has another id. The tokens between the two ids move by one.

    Args:
        tokenizer: A WordPiece, BPE or Unigram tokenizer; it is not changed.
        token: A token of its vocabulary, not one that was added later.
        index: The token's new id.

    Raises:
        InputError: If the tokenizer is of another kind, or the vocabulary has no such token or id.
    """
    tokens = _SubwordTokens(tokenizer)
    vocabulary = sorted(tokens.vocabulary, key=lambda each: tokens.ids[each])
    added = sorted(tokens.ids.keys() - tokens.vocabulary, key=lambda each: tokens.ids[each])
    if token not in tokens.vocabulary or index >= len(vocabulary):
        raise InputError(
            f"the token {token} is to have the id {index}; expected one of the vocabulary's {len(vocabulary)} tokens, "
            "and an id below their number"
        )
    vocabulary.remove(token)
    vocabulary.insert(index, token)
    return _with_tokens(tokens.content, vocabulary, added)


def _required(tokens: _SubwordTokens, counts: Counter[str], keep: set[str]) -> set[str]:
    """Return the tokens that are kept at any vocabulary size."""
    spelling = keep | tokens.alphabet((counts.keys() | keep) - tokens.special)
    return tokens.special.union(*(tokens.with_merge_parts(token) for token in spelling))


def _fill(tokens: _SubwordTokens, counts: Counter[str], required: set[str], size: int | None) -> set[str]:
    """Add the most frequent tokens, each with the tokens that it is merged from, until the vocabulary is full."""
    kept = set(required)
    room = len(tokens.ids) if size is None else size
    candidates = counts if size is None else tokens.ids
    for token in sorted(candidates, key=lambda token: (-counts[token], tokens.ids[token])):
        if len(kept) >= room:
            break
        if token in counts or tokens.is_reachable(token):
            added = tokens.with_merge_parts(token) - kept
            if len(kept) + len(added) <= room:
                kept |= added
    return kept


def _sort(tokens: _SubwordTokens, kept: set[str]) -> list[str]:
    return sorted(kept, key=lambda token: (token not in tokens.special, tokens.ids[token]))


def _pin(tokens: list[str], pinned: dict[int, str | None]) -> list[str]:
    """Move pinned tokens to their ids."""
    for index, token in sorted(pinned.items()):
        if token not in tokens or index >= len(tokens):
            raise InputError(
                f"token {index} must keep its id, but {len(tokens)} tokens are kept; expected more than {index}: "
                "choose a larger size"
            )
        tokens.remove(token)
        tokens.insert(index, token)
    return tokens


class _SubwordTokens:
    """The tokens of a subword tokenizer and their relations.

    Args:
        tokenizer: A WordPiece, BPE or Unigram tokenizer.

    Attributes:
        content: The content of tokenizer.json.
        ids: The id of every token.
        vocabulary: The tokens of the vocabulary, without those that were added later.
        special: Tokens that any text needs: special tokens, added tokens, the unknown token, padding.

    Raises:
        InputError: If the tokenizer is of another kind.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.content = tokenizer_json(tokenizer)
        self.ids: dict[str, int] = tokenizer.get_vocab()
        model = self.content["model"]
        if model["type"] not in _SUBWORD_MODELS:
            raise InputError(
                f"the tokenizer is a {model['type']} tokenizer; expected one of: {', '.join(_SUBWORD_MODELS)}; "
                "choose a model whose tokenizer splits words into pieces"
            )
        self.vocabulary: set[str] = set(_vocabulary(model))
        self.special: set[str] = _special_tokens(self.content) & self.ids.keys()
        self._tokenizer = tokenizer
        self._prefix: str = model.get("continuing_subword_prefix") or ""
        self._suffix: str = model.get("end_of_word_suffix") or ""
        self._merge_ranks = {tuple(pair): rank for rank, pair in enumerate(model.get("merges", ()))}
        self._merged = {self._merge(*pair) for pair in self._merge_ranks}

    def alphabet(self, tokens: Iterable[str]) -> set[str]:
        """Return the tokens that can spell every word made of the characters in some tokens.

        These are the single characters, also as continuations and as ends of words; all bytes if the tokenizer works
        on bytes or falls back to them; and the tokens with a character that is not itself a token.
        """
        tokens = set(tokens) - _BYTE_FALLBACK_TOKENS
        characters = {character for token in tokens for character in self._surface(token)} | self._byte_characters()
        affixes = [(before, after) for before in {"", self._prefix} for after in {"", self._suffix}]
        forms = {before + character + after for character in characters for before, after in affixes}
        unspelled = {token for token in tokens if not self.ids.keys() >= set(self._spell(token))}
        return (forms | _BYTE_FALLBACK_TOKENS) & self.vocabulary | unspelled

    def with_merge_parts(self, token: str) -> set[str]:
        """Return a token and, for BPE, the tokens that it is merged from."""
        parts = self._spell(token)
        found = {token}
        while self._merge_ranks:
            found.update(parts)
            pairs = list(pairwise(parts))
            first = min(range(len(pairs)), key=lambda i: self._merge_ranks.get(pairs[i], math.inf), default=None)
            if first is None or pairs[first] not in self._merge_ranks:
                break
            parts[first : first + 2] = [self._merge(*pairs[first])]
        return found & self.ids.keys()

    def is_reachable(self, token: str) -> bool:
        """Return whether the tokenizer can produce a token; it never produces `[unused7]`, or capitals if it folds."""
        kind, surface = self.content["model"]["type"], self._surface(token)
        if kind == "BPE":
            return len(surface) == 1 or token in self._merged
        if kind == "Unigram":
            return [piece.value for piece in self._tokenizer.model.tokenize(token)] == [token]
        normalizer, pre_tokenizer = self._tokenizer.normalizer, self._tokenizer.pre_tokenizer
        normalized = normalizer.normalize_str(surface) if normalizer else surface
        words = pre_tokenizer.pre_tokenize_str(normalized) if pre_tokenizer else [(surface, (0, 0))]
        return normalized == surface and len(words) == 1

    def _merge(self, first: str, second: str) -> str:
        return first + second.removeprefix(self._prefix)

    def _surface(self, token: str) -> str:
        return token.removeprefix(self._prefix).removesuffix(self._suffix)

    def _spell(self, token: str) -> list[str]:
        """Return the characters of a token as the vocabulary writes them; the token itself if it has none."""
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
        steps = json.dumps([self.content["normalizer"], self.content["pre_tokenizer"]])
        return set(pre_tokenizers.ByteLevel.alphabet()) if '"ByteLevel"' in steps else set()


def _vocabulary(model: dict[str, Any]) -> list[str]:
    vocabulary = model["vocab"]
    return [token for token, _ in vocabulary] if model["type"] == "Unigram" else list(vocabulary)


def _special_tokens(content: dict[str, Any]) -> set[str]:
    model = content["model"]
    special = {token["content"] for token in content["added_tokens"]}
    if model.get("unk_token") is not None:
        special.add(model["unk_token"])
    if model.get("unk_id") is not None:  # Unigram stores the id
        special.add(model["vocab"][model["unk_id"]][0])
    if content["padding"]:
        special.add(content["padding"]["pad_token"])
    return special | _post_processor_tokens(content["post_processor"] or {})


def _post_processor_tokens(processor: dict[str, Any]) -> set[str]:
    """Return the tokens that a post-processor of any type adds to a text."""
    tokens = {processor[name][0] for name in ("sep", "cls") if name in processor}  # BertProcessing, RobertaProcessing
    for special in processor.get("special_tokens", {}).values():  # TemplateProcessing
        tokens.update(special["tokens"])
    return tokens.union(*(_post_processor_tokens(part) for part in processor.get("processors", [])))  # Sequence


def _with_tokens(content: dict[str, Any], vocabulary: Sequence[str], added: Sequence[str]) -> Tokenizer:
    """Return a tokenizer with other tokens, whose new ids replace the old ones everywhere in tokenizer.json.

    Args:
        content: The content of tokenizer.json; it is changed.
        vocabulary: The tokens of the vocabulary, in their new order.
        added: The added tokens outside the vocabulary, in their new order.
    """
    ids = {token: index for index, token in enumerate([*vocabulary, *added])}
    _replace_vocabulary(content["model"], vocabulary)
    for token in content["added_tokens"]:
        token["id"] = ids[token["content"]]
    content["added_tokens"].sort(key=lambda token: token["id"])
    padding = content["padding"]
    if padding:
        padding["pad_id"] = ids.get(padding["pad_token"], padding["pad_id"])
    if content["post_processor"]:
        _renumber_post_processor(content["post_processor"], ids)
    return Tokenizer.from_str(json.dumps(content))


def _replace_vocabulary(model: dict[str, Any], vocabulary: Sequence[str]) -> None:
    if model["type"] == "Unigram":
        unknown = None if model["unk_id"] is None else model["vocab"][model["unk_id"]][0]
        scores = dict(model["vocab"])
        model["vocab"] = [[token, scores[token]] for token in vocabulary]
        model["unk_id"] = None if unknown is None else vocabulary.index(unknown)
        return
    model["vocab"] = {token: index for index, token in enumerate(vocabulary)}
    if model["type"] == "BPE":
        prefix = model["continuing_subword_prefix"] or ""
        model["merges"] = [
            [first, second]
            for first, second in model["merges"]
            if {first, second, first + second.removeprefix(prefix)} <= model["vocab"].keys()
        ]


def _renumber_post_processor(processor: dict[str, Any], ids: Mapping[str, int]) -> None:
    """Replace the ids of the tokens that a post-processor of any type adds."""
    for name in ("sep", "cls"):
        if name in processor:  # BertProcessing, RobertaProcessing
            processor[name] = [processor[name][0], ids[processor[name][0]]]
    for special in processor.get("special_tokens", {}).values():  # TemplateProcessing
        special["ids"] = [ids[token] for token in special["tokens"]]
    for part in processor.get("processors", []):  # Sequence
        _renumber_post_processor(part, ids)
