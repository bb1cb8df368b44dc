"""A trimmed vocabulary: cut from an existing tokenizer, so that its embeddings can be kept."""

from collections import Counter
from collections.abc import Collection, Iterable

from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer

from edgeembed_exporters.tailoring.encodings import encode_all
from edgeembed_exporters.tailoring.pieces import Pieces
from edgeembed_exporters.tailoring.renumbering import with_tokens


def trim_tokenizer(
    tokenizer: Tokenizer,
    sentences: Iterable[str],
    *,
    size: int | None = None,
    keep: Collection[int] = (),
    pinned: Collection[int] = (),
) -> Tokenizer:
    """Give the tokenizer with only the tokens that a corpus needs.

    Kept are the special and added tokens, whatever spells any word of the corpus's characters (so that a word
    whose token is cut falls into pieces and not into the unknown token), and then the tokens that the
    tokenizer uses on the corpus, in BPE with the tokens that they are merged from. A token keeps its string,
    which leads back to its row in the source's embedding table.

    Args:
        tokenizer: A WordPiece, BPE or Unigram tokenizer; it is not changed.
        sentences: The corpus; a batch of it is in memory at a time.
        size: How many tokens to keep, special ones included: the most used, and where the corpus uses fewer,
            those with the lowest ids fill up. None keeps every token that the corpus uses, and no other.
        keep: Ids of further tokens to keep.
        pinned: Ids whose tokens are kept and keep their id.

    Returns:
        A tokenizer that is otherwise the same. Special tokens come first, then the others, each in the
        source's order; added tokens that are no part of the vocabulary come last, as they must.

    Raises:
        InputError: If the tokenizer is of another kind, there is no text, `size` has no room for what is
            always kept, or a pinned token cannot keep its id.
    """
    pieces = Pieces(tokenizer)
    uses = _count_uses(tokenizer, sentences)
    if not uses:
        raise InputError("there is no text to trim a vocabulary to; expected at least one word")
    always = _always(pieces, uses, {tokenizer.id_to_token(index) for index in {*keep, *pinned}} - {None})
    if size is not None and size < len(always):
        raise InputError(
            f"a vocabulary of {size} tokens was asked for; expected at least {len(always)} for this corpus: "
            f"{len(pieces.special)} special tokens and {len(always - pieces.special)} characters and others to keep"
        )
    kept = _fill(pieces, uses, always, size)
    inside = _pin(_ordered(pieces, kept & pieces.inside), {index: tokenizer.id_to_token(index) for index in pinned})
    return with_tokens(pieces.described, inside, _ordered(pieces, kept - pieces.inside))


def _count_uses(tokenizer: Tokenizer, sentences: Iterable[str]) -> Counter[str]:
    uses: Counter[int] = Counter()
    for encoding in encode_all(tokenizer, sentences):
        uses.update(encoding.ids)
    return Counter({tokenizer.id_to_token(index): count for index, count in uses.items()})


def _always(pieces: Pieces, uses: Counter[str], keep: set[str]) -> set[str]:
    """Give the tokens that are kept however few are asked for."""
    spelling = keep | pieces.alphabet((uses.keys() | keep) - pieces.special)
    return pieces.special.union(*(pieces.origins(token) for token in spelling))


def _fill(pieces: Pieces, uses: Counter[str], always: set[str], size: int | None) -> set[str]:
    """Add the most used tokens, each with those it is merged from, as far as there is room."""
    kept = set(always)
    room = len(pieces.ids) if size is None else size
    for token in sorted(uses if size is None else pieces.ids, key=lambda token: (-uses[token], pieces.ids[token])):
        if len(kept) >= room:
            break
        if token in uses or pieces.is_reachable(token):
            wanted = pieces.origins(token) - kept
            if len(kept) + len(wanted) <= room:
                kept |= wanted
    return kept


def _ordered(pieces: Pieces, tokens: set[str]) -> list[str]:
    return sorted(tokens, key=lambda token: (token not in pieces.special, pieces.ids[token]))


def _pin(tokens: list[str], pinned: dict[int, str | None]) -> list[str]:
    for index, token in sorted(pinned.items()):
        if token not in tokens or index >= len(tokens):
            raise InputError(
                f"token {index} must keep its id, but {len(tokens)} tokens are kept; expected more than {index}: "
                "ask for a larger size"
            )
        tokens.remove(token)
        tokens.insert(index, token)
    return tokens
