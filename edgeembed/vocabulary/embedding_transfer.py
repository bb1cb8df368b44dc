"""Map the tokens of a new vocabulary to a source vocabulary, to initialize their embeddings."""

from tokenizers import Tokenizer

from edgeembed.vocabulary.wordpiece import PREFIX, expect_wordpiece

_ADVICE = (
    "set vocabulary.kind to teacher, or let the student neither start from token embeddings nor learn them "
    "(student.table_init=random, and no loss token_embedding)"
)


def source_token_ids(new: Tokenizer, source: Tokenizer) -> list[list[int]]:
    """Return the source tokens whose mean embedding initializes each token of a new vocabulary.

    A token that the source has too maps to itself. Other tokens are split into source tokens; all pieces of a
    continuation are continuations. Source: Gee et al. 2022, "Fast Vocabulary Transfer for Language Model Compression".

    Args:
        new: The student's tokenizer.
        source: The tokenizer of the model whose embedding table is used.

    Returns:
        One list of source ids for each id of `new`, in ascending order of ids. A token that cannot be split maps to the
        source's unknown token.

    Raises:
        InputError: If one of the two is not a WordPiece tokenizer.
    """
    expect_wordpiece(new, "the student's tokenizer", _ADVICE)
    special = {token.content for token in new.get_added_tokens_decoder().values()}
    vocabulary = source.get_vocab()
    unknown = vocabulary[expect_wordpiece(source, "its source's tokenizer", _ADVICE)["model"]["unk_token"]]
    rows = []
    for token, _ in sorted(new.get_vocab().items(), key=lambda item: item[1]):
        if token in vocabulary:
            rows.append([vocabulary[token]])
        else:
            rows.append((token not in special and _pieces(token, source, vocabulary)) or [unknown])
    return rows


def _pieces(token: str, source: Tokenizer, vocabulary: dict[str, int]) -> list[int]:
    """Split a token greedily, longest piece first, as WordPiece does; return an empty list if a piece is missing."""
    prefix = PREFIX if token.startswith(PREFIX) else ""
    surface = token.removeprefix(PREFIX)
    rest = source.normalizer.normalize_str(surface) if source.normalizer else surface
    ids = []
    while rest:
        length = next((n for n in range(len(rest), 0, -1) if prefix + rest[:n] in vocabulary), 0)
        if not length:
            return []
        ids.append(vocabulary[prefix + rest[:length]])
        prefix, rest = PREFIX, rest[length:]
    return ids
