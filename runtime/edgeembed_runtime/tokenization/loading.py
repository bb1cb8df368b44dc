"""Load the tokenizer of a bundle."""

from edgeembed_runtime.errors import MissingExtraError
from edgeembed_runtime.tokenization.tokenizer import Tokenizer
from edgeembed_runtime.tokenization.wordpiece import WordPieceTokenizer
from edgeembed_runtime.tokenization.wordpiece_file import read_json, read_wordpiece


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
    wordpiece = read_wordpiece(content, where)
    if wordpiece is not None:
        return WordPieceTokenizer(wordpiece, max_seq_length, where, is_pairs=is_pairs)
    try:
        from edgeembed_runtime.tokenization.library import LibraryTokenizer
    except ImportError as error:
        read_json(content, where)  # what is not a tokenizer needs no package
        package = f"tokenizers, which {where} needs,"
        raise MissingExtraError(package, "tokenizers", "edgeembed-runtime") from error
    return LibraryTokenizer(content, max_seq_length, where, is_pairs=is_pairs)
