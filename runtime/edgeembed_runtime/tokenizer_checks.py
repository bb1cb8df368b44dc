"""What a tokenizer.json must not say: what the library would not survive, or not bring to an end."""

import binascii
import json
from collections.abc import Iterator
from typing import Any

import tokenizers

from edgeembed_runtime.errors import BundleError

# WordPiece looks at every part of a word: the square of its length. Those in use say 100.
_LONGEST_WORD = 1000
_COUNT_BYTES = 4


def check_before_loading(content: bytes, where: str) -> None:
    """Refuse a table of characters that claims more bytes than it has: the library would ask for them, and abort.

    Args:
        content: The whole tokenizer.json.
        where: Its path, for messages.

    Raises:
        BundleError: If it holds such a table.
    """
    # To parse takes half as long as to load, so only where one may be; an escape could hide its name.
    if b"Precompiled" not in content and b"\\u00" not in content:
        return
    try:
        document = json.loads(content)
        tables = [binascii.a2b_base64(table) for table in _character_tables(document)]
    except (ValueError, TypeError, RecursionError) as error:
        raise BundleError(f"{where} is no tokenizer: {error}; export the bundle again") from error
    for table in tables:
        claimed = int.from_bytes(table[:_COUNT_BYTES], "little")
        if len(table) < _COUNT_BYTES or claimed > len(table) - _COUNT_BYTES:
            raise BundleError(
                f"{where} has a precompiled_charsmap of {len(table)} bytes that claims {claimed}; "
                "export the bundle again"
            )


def check_loaded(tokenizer: tokenizers.Tokenizer, where: str) -> None:
    """Refuse a model whose tokens are drawn at random, or that takes too long over a long word.

    Args:
        tokenizer: What the library made of the file.
        where: The file's path, for messages.

    Raises:
        BundleError: If it is such a model.
    """
    if getattr(tokenizer.model, "dropout", None):
        raise BundleError(
            f"{where} drops merges at random, expected the same tokens each time; export the bundle again"
        )
    longest = getattr(tokenizer.model, "max_input_chars_per_word", 0)
    if longest > _LONGEST_WORD:
        raise BundleError(
            f"{where} reads words of {longest} characters, expected at most {_LONGEST_WORD}; export the bundle again"
        )


def _character_tables(value: Any) -> Iterator[Any]:
    """Give what lies under "precompiled_charsmap", at any depth."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if key == "precompiled_charsmap":
            yield item
        else:
            yield from _character_tables(item)
