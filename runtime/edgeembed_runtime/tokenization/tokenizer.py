"""The tokenizer of a bundle: what it does, what it returns, and how it is loaded."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from edgeembed_runtime.errors import BundleError, InputError, MissingExtraError

# The maximum number of characters that a tokenizer reads: enough unless a text has words of thousands of characters.
_MAX_CHARACTERS_PER_TOKEN = 256
_MAX_CHARACTERS = 2**16


class TextInfo(NamedTuple):
    """The tokenization results of a text.

    Attributes:
        tokens: The number of tokens read, including special tokens.
        truncated: Whether the end of the text was not read.
        unknown: The pieces of the text without a token in the vocabulary, in order. In a text of thousands of
            characters, very long runs of one character are shortened.
        known_share: The share of tokens that the vocabulary knows as words or parts of words, from 0 to 1, without the
            prompt. Punctuation does not count; a text without words has 1. Unknown are pieces without a token, and
            single letters of a script of which the vocabulary has no words. At 0.1 or less, an `UnknownTextWarning` is
            emitted.
    """

    tokens: int
    truncated: bool
    unknown: tuple[str, ...]
    known_share: float = 1.0


class Tokens(NamedTuple):
    """The tokens of a text.

    Attributes:
        ids: Token ids, including special tokens.
        truncated: Whether the end of the text was cut off.
        unknown: The number of unknown tokens among them: pieces of the text without a token in the vocabulary. Special
            tokens that are added to each text do not count.
    """

    ids: list[int]
    truncated: bool
    unknown: int


class Tokenizer(Protocol):
    """The tokenizer of a bundle; it truncates and never pads. Threads may share it."""

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """The id of each token."""

    @property
    def unknown_id(self) -> int | None:
        """The id of the unknown token; None if there is none."""

    def tokenize(self, text: str | tuple[str, str]) -> Tokens:
        """Tokenize a text, or a pair of texts as one sequence, in bounded time.

        Only the beginning of a long text is tokenized, as far as is needed to fill the limit; the tokens are those of
        the whole text. A tokenizer reads at most 256 characters for each token of the limit, or 65,536 if that is
        more; a text that is longer counts as truncated.

        Of a pair that is too long, tokens are removed from the end of the longer text first. Each of its texts is cut
        at the number of characters above.

        Args:
            text: The text, or the two texts of a pair.

        Returns:
            The tokens.

        Raises:
            InputError: If the part that is read contains a lone surrogate, which is not valid Unicode.
            BundleError: If this tokenizer cannot read the text.
        """

    def describe(self, text: str) -> TextInfo:
        """Return the tokenization results of a text.

        Raises:
            InputError: As `tokenize` does.
            BundleError: As `tokenize` does.
        """

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Return where each token of a text starts and ends, of the whole text, whatever its length.

        Special tokens that are added to each text are not among them.

        Args:
            text: The text.

        Returns:
            The start and the end of each token in characters, in the order of the text. Tokens that share a character
            overlap.

        Raises:
            InputError: As `tokenize` does.
            BundleError: As `tokenize` does.
        """


def load_tokenizer(content: bytes, max_seq_length: int, where: str, *, is_pairs: bool = False) -> Tokenizer:
    """Load a tokenizer.json: WordPiece as BERT's runs here, other tokenizers in the package `tokenizers`.

    Args:
        content: The bytes of the bundle's tokenizer.json.
        max_seq_length: The maximum number of tokens, including special tokens.
        where: The file's path, for messages.
        is_pairs: Whether it tokenizes pairs of texts.

    Returns:
        The tokenizer.

    Raises:
        BundleError: If the file is not a tokenizer, or special tokens alone reach the limit.
        MissingExtraError: If it needs the package `tokenizers`, which is not installed.
    """
    from edgeembed_runtime.tokenization.wordpiece_file import read_json, read_wordpiece

    wordpiece = read_wordpiece(content, where)
    if wordpiece is not None:
        from edgeembed_runtime.tokenization.wordpiece import WordPieceTokenizer

        return WordPieceTokenizer(wordpiece, max_seq_length, where, is_pairs=is_pairs)
    try:
        from edgeembed_runtime.tokenization.library import LibraryTokenizer
    except ImportError as error:
        read_json(content, where)  # what is not a tokenizer needs no package
        package = f"tokenizers, which {where} needs,"
        raise MissingExtraError(package, "tokenizers", "edgeembed-runtime") from error
    return LibraryTokenizer(content, max_seq_length, where, is_pairs=is_pairs)


def max_characters(max_seq_length: int) -> int:
    """Return the maximum number of characters that a tokenizer reads of a text."""
    return max(max_seq_length * _MAX_CHARACTERS_PER_TOKEN, _MAX_CHARACTERS)


def check_limit(max_seq_length: int, special_tokens: int, where: str) -> None:
    """Check that special tokens leave room for a text.

    Args:
        max_seq_length: The maximum number of tokens, including special tokens.
        special_tokens: The number of special tokens that the tokenizer adds to a text or a pair.
        where: The file's path, for messages.

    Raises:
        BundleError: If special tokens alone reach the limit.
    """
    if max_seq_length <= special_tokens:
        raise BundleError(
            f"{where} adds {special_tokens} special tokens, expected fewer than max_seq_length, which is "
            f"{max_seq_length}; export the bundle again"
        )


def surrogate_error(text: str) -> InputError:
    """Return the error for a text that contains a lone surrogate."""
    position = next(i for i, character in enumerate(text) if "\ud800" <= character <= "\udfff")
    return InputError(
        f"contains a lone surrogate (U+{ord(text[position]):04X} at character {position}), as Python makes of a byte "
        "that is not UTF-8, expected valid Unicode; give the text as UTF-8, or decode it with errors='replace'"
    )
