"""A trimmed vocabulary: cut from an existing tokenizer, so that its embeddings can be kept."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer

from edgeembed.vocabulary.wordpiece import PREFIX, encode_all, expect_wordpiece


def trim_vocabulary(tokenizer: Tokenizer, sentences: Iterable[str], size: int) -> Tokenizer:
    """Give the tokenizer with only the tokens that a corpus needs most.

    Kept are the special and added tokens, every character of the corpus alone and as a continuation (so that
    a word whose token is cut falls into pieces and not into [UNK]), and then the tokens that the tokenizer
    uses most on the corpus; where it uses fewer than `size`, those with the lowest ids fill up. A token keeps
    its string, which leads back to its row in the source's embedding table (`source_rows`).

    Args:
        tokenizer: A WordPiece tokenizer; it is not changed.
        sentences: The corpus.
        size: How many tokens to keep, special ones included; where the source has fewer that any text can
            give, those are kept.

    Returns:
        A tokenizer with the same normaliser, pre-tokenizer and post-processor, that neither truncates nor
        pads. Special tokens come first, then the others, each in the source's order.

    Raises:
        InputError: If the tokenizer is not WordPiece, or `size` has no room for special tokens and
            characters.
    """
    described = expect_wordpiece(tokenizer, "the tokenizer to trim")
    vocabulary = tokenizer.get_vocab()
    special = _special_tokens(described)
    uses = _count_uses(tokenizer, sentences)
    characters = _characters(uses, vocabulary) - special
    needed = len(special) + len(characters)
    if size < needed:
        raise InputError(
            f"a vocabulary of {size} tokens was asked for; expected at least {needed} for this corpus: "
            f"{len(special)} special tokens and {len(characters)} characters and continuations"
        )
    others = _by_use(uses, vocabulary, tokenizer, without=special | characters)
    kept = characters.union(others[: size - needed])
    ordered = sorted(special, key=vocabulary.__getitem__) + sorted(kept, key=vocabulary.__getitem__)
    return _with_vocabulary(described, {token: index for index, token in enumerate(ordered)})


def _special_tokens(described: dict[str, Any]) -> set[str]:
    return {token["content"] for token in described["added_tokens"]} | {described["model"]["unk_token"]}


def _count_uses(tokenizer: Tokenizer, sentences: Iterable[str]) -> Counter[str]:
    uses: Counter[int] = Counter()
    for encoding in encode_all(tokenizer, sentences):
        uses.update(encoding.ids)
    return Counter({tokenizer.id_to_token(index): count for index, count in uses.items()})


def _characters(uses: Counter[str], vocabulary: dict[str, int]) -> set[str]:
    seen = {character for token in uses for character in token.removeprefix(PREFIX)}
    return {form for character in seen for form in (character, PREFIX + character) if form in vocabulary}


def _by_use(uses: Counter[str], vocabulary: dict[str, int], tokenizer: Tokenizer, without: set[str]) -> list[str]:
    candidates = (token for token in vocabulary if token not in without)
    reachable = [token for token in candidates if token in uses or _is_reachable(token, tokenizer)]
    return sorted(reachable, key=lambda token: (-uses[token], vocabulary[token]))


def _is_reachable(token: str, tokenizer: Tokenizer) -> bool:
    """Tell whether any text can give the token: `[unused7]` and folded capitals never come out."""
    surface = token.removeprefix(PREFIX)
    normalised = tokenizer.normalizer.normalize_str(surface) if tokenizer.normalizer else surface
    words = tokenizer.pre_tokenizer.pre_tokenize_str(normalised) if tokenizer.pre_tokenizer else [(surface, (0, 0))]
    return normalised == surface and len(words) == 1


def _with_vocabulary(described: dict[str, Any], vocabulary: dict[str, int]) -> Tokenizer:
    described["model"]["vocab"] = vocabulary
    described["truncation"] = described["padding"] = None
    for token in described["added_tokens"]:
        token["id"] = vocabulary[token["content"]]
    described["added_tokens"].sort(key=lambda token: token["id"])
    if described["post_processor"]:
        _renumber(described["post_processor"], vocabulary)
    return Tokenizer.from_str(json.dumps(described))


def _renumber(processor: dict[str, Any], vocabulary: dict[str, int]) -> None:
    """Give a post-processor's special tokens their new ids, in each of the forms that tokenizers writes."""
    for name in ("sep", "cls"):
        if name in processor:  # BertProcessing, RobertaProcessing
            processor[name] = [processor[name][0], vocabulary[processor[name][0]]]
    for special in processor.get("special_tokens", {}).values():  # TemplateProcessing
        special["ids"] = [vocabulary[token] for token in special["tokens"]]
    for part in processor.get("processors", []):  # Sequence
        _renumber(part, vocabulary)
