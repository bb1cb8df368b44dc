"""A trimmed vocabulary: cut from an existing WordPiece tokenizer, so that its embeddings can be kept."""

from collections.abc import Iterable

from edgeembed_exporters.tailoring.encodings import untruncated
from edgeembed_exporters.tailoring.vocabulary import trim_tokenizer
from tokenizers import Tokenizer

from edgeembed.vocabulary.wordpiece import expect_wordpiece


def trim_vocabulary(tokenizer: Tokenizer, sentences: Iterable[str], size: int) -> Tokenizer:
    """Give the tokenizer with only the tokens that a corpus needs most.

    Args:
        tokenizer: A WordPiece tokenizer; it is not changed.
        sentences: The corpus.
        size: How many tokens to keep, special ones included; where the source has fewer that any text can
            give, those are kept.

    Returns:
        A tokenizer with the same normaliser, pre-tokenizer and post-processor, that neither truncates nor
        pads. Which tokens it has, and in which order, `trim_tokenizer` says.

    Raises:
        InputError: If the tokenizer is not WordPiece, there is no text, or `size` has no room for special tokens
            and characters.
    """
    expect_wordpiece(tokenizer, "the tokenizer to trim")
    return trim_tokenizer(untruncated(tokenizer), sentences, size=size)
