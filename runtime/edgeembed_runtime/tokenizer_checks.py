"""What a tokenizer.json must not say: what the library would not survive, or not bring to an end."""

import binascii
import json
import math
from collections.abc import Iterator
from typing import Any

import tokenizers

from edgeembed_runtime.errors import BundleError

# WordPiece looks at every part of a word: the square of its length. Those in use say 100.
_LONGEST_WORD = 1000
_COUNT_BYTES = 4
# One Arabic sign becomes 18; those who replace a character by many, several times over, fill the memory with a page.
_MOST_GROWTH = 1000


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
    """Refuse tokens drawn at random, and what takes far more time or memory than a text is long.

    Args:
        tokenizer: What the library made of the file.
        where: The file's path, for messages.

    Raises:
        BundleError: If the tokenizer does any of this.
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
    growth = math.prod(_growth(part) for part in [*_parts(tokenizer.normalizer), *_parts(tokenizer.pre_tokenizer)])
    if growth > _MOST_GROWTH:
        raise BundleError(
            f"{where} puts too many characters in one's place, expected at most {_MOST_GROWTH}; export the bundle again"
        )
    for part in _parts(tokenizer.post_processor):
        if isinstance(single := part.get("single"), list) and sum("Sequence" in piece for piece in single) > 1:
            raise BundleError(f"{where} repeats a text's tokens, expected each once; export the bundle again")


def _character_tables(document: Any) -> Iterator[Any]:
    return (part["precompiled_charsmap"] for part in _objects(document) if "precompiled_charsmap" in part)


def _parts(component: Any) -> Iterator[dict[str, Any]]:
    """Give a component of a tokenizer, and all that it consists of, as its JSON says it."""
    return _objects(json.loads(component.__getstate__())) if component is not None else iter(())


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Give the objects in a JSON document, at any depth."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _objects(item)


def _growth(part: dict[str, Any]) -> int:
    """Give how many characters a part of a normalizer or pre-tokenizer may put in the place of one."""
    match part.get("type"):
        case "Replace":
            return max(1, len(part["content"]))
        case "Prepend":
            return max(1, len(part["prepend"]))
        case "ByteLevel":
            return 2
        case "Precompiled":
            table = binascii.a2b_base64(part["precompiled_charsmap"])
            texts = table[_COUNT_BYTES + int.from_bytes(table[:_COUNT_BYTES], "little") :]
            return max(1, *(len(text) for text in texts.split(b"\0")))
    return 1
