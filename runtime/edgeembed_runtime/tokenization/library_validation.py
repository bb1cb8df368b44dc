"""Reject a tokenizer.json that would make the tokenizers library crash, panic, or run forever.

When the library panics, it prints several lines to stderr before it raises an error. Therefore known causes of panics
are checked beforehand.
"""

import binascii
import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers

from edgeembed_runtime.errors import BundleError

# WordPiece takes time proportional to the square of a word's length. Published tokenizers have a limit of 100.
_MAX_WORD_CHARACTERS = 1000
# An escaped character, a class (whose brackets may be nested once), a repetition without a limit, or any character.
_REGEX_PART = r"\\.|\[(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\]\\\[])*\]|\{\d*,\}|."
_MAX_REGEX_CHARACTERS = 4096
# NFKC expands one Arabic character to 18. Repeated replacements of a character by many would fill the memory.
_MAX_GROWTH = 1000

# The layout of a precompiled_charsmap: its size field, the units of its trie, and the bits of a unit.
_COUNT_BYTES = 4
_UNIT_BYTES = 4
_VALUE = 2**31 - 1
_LABEL = 2**31 | 0xFF
# The trie of XLM-R has 60,000 units.
_MAX_UNITS = 2**20
_BLOCK = 4096


def check_before_loading(content: bytes, where: str) -> None:
    """Check the precompiled_charsmap tables: the library aborts or panics on invalid ones.

    Args:
        content: The whole tokenizer.json.
        where: Its path, for messages.

    Raises:
        BundleError: If a table is invalid.
    """
    # Parsing takes half as long as loading, so it is done only if there may be a table, whose name may be escaped.
    if b"Precompiled" not in content and b"\\u00" not in content:
        return
    try:
        document = json.loads(content)
        tables = [binascii.a2b_base64(table) for table in _character_tables(document)]
    except (ValueError, TypeError, RecursionError) as error:
        raise BundleError(f"{where} is not a tokenizer: {error}; export the bundle again") from error
    for table in tables:
        try:
            _check_charsmap(table)
        except ValueError as error:
            raise BundleError(f"{where} {error}; export the bundle again") from error


def check_loaded(tokenizer: tokenizers.Tokenizer, where: str) -> None:
    """Check that a loaded tokenizer is deterministic, needs bounded time and memory, and will not panic.

    Args:
        tokenizer: The tokenizer that the library loaded.
        where: The file's path, for messages.

    Raises:
        BundleError: If one of the checks fails.
    """
    if getattr(tokenizer.model, "dropout", None):
        raise BundleError(
            f"{where} drops merges at random, expected the same tokens each time; export the bundle again"
        )
    longest = getattr(tokenizer.model, "max_input_chars_per_word", 0)
    if longest > _MAX_WORD_CHARACTERS:
        raise BundleError(
            f"{where} reads words of {longest} characters, expected at most {_MAX_WORD_CHARACTERS}; "
            "export the bundle again"
        )
    before = [*_parts(tokenizer.normalizer), *_parts(tokenizer.pre_tokenizer)]
    growth = math.prod(_growth(part) for part in before)
    if growth > _MAX_GROWTH:
        raise BundleError(
            f"{where} replaces one character by too many, expected at most {_MAX_GROWTH}; export the bundle again"
        )
    if any(part.get("type") == "FixedLength" and part["length"] < 1 for part in before):
        raise BundleError(f"{where} splits texts into pieces of length 0; export the bundle again")
    for pattern in (part["Regex"] for part in before if isinstance(part.get("Regex"), str)):
        if _may_backtrack(pattern):
            raise BundleError(
                f"{where} has the regular expression {pattern[:80]!r}, expected none that repeats a group of "
                "alternatives or repetitions, which may never finish; export the bundle again"
            )
    for part in _parts(tokenizer.post_processor):
        if (missing := _missing_from_template(part)) is not None:
            raise BundleError(
                f"{where} has a template that refers to {missing}, which it does not define; export the bundle again"
            )
        if isinstance(single := part.get("single"), list) and sum("Sequence" in piece for piece in single) > 1:
            raise BundleError(f"{where} repeats a text's tokens, expected each once; export the bundle again")


def _character_tables(document: Any) -> Iterator[Any]:
    return (part["precompiled_charsmap"] for part in _objects(document) if "precompiled_charsmap" in part)


def _parts(component: Any) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a tokenizer component and its parts."""
    return _objects(json.loads(component.__getstate__())) if component is not None else iter(())


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a JSON document, at any depth."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _objects(item)


def _missing_from_template(part: dict[str, Any]) -> str | None:
    """Return what a template for a single text refers to but does not define; None if it defines everything."""
    if part.get("type") != "TemplateProcessing":
        return None
    for piece in part["single"]:
        if "Sequence" in piece and piece["Sequence"]["id"] != "A":
            return "a second text"
        if "SpecialToken" in piece and piece["SpecialToken"]["id"] not in part["special_tokens"]:
            return f"the token {piece['SpecialToken']['id'][:80]!r}"
    return None


def _may_backtrack(pattern: str) -> bool:
    """Return whether a regular expression repeats, without a limit, a group of alternatives or of repetitions.

    Examples are `(a|aa)+` and `(a+)*`: their time can double with every character. Published tokenizers contain none.
    The time of other expressions is polynomial in the text's length, which is limited. Very long expressions count as
    unsafe.
    """
    if len(pattern) > _MAX_REGEX_CHARACTERS:
        return True
    groups = [False]  # for each open group: whether it contains alternatives or repetitions
    closed = False  # whether such a group was closed just before
    for part in re.findall(_REGEX_PART, pattern, flags=re.DOTALL):
        if re.fullmatch(r"[*+]|\{\d*,\}", part):
            if closed:
                return True
            groups[-1] = True
        elif part == "|":
            groups[-1] = True
        elif part == "(":
            groups.append(False)
        closed = part == ")" and len(groups) > 1 and groups.pop()
        groups[-1] = groups[-1] or closed
    return False


def _growth(part: dict[str, Any]) -> int:
    """Return how many characters a part of a normalizer or pre-tokenizer may substitute for one."""
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


def _check_charsmap(table: bytes) -> None:
    """Check that no lookup reads outside a `precompiled_charsmap`, SentencePiece's table of character replacements.

    The table consists of a size in bytes, a double-array trie (Aoe 1989, in the layout of Darts-clone) of that size,
    and the replacements, each terminated by a zero byte. The tokenizers library follows the trie without bounds checks.

    Args:
        table: The decoded precompiled_charsmap.

    Raises:
        ValueError: If the trie is empty or larger than the table, or points outside itself or the replacements.
    """
    claimed = int.from_bytes(table[:_COUNT_BYTES], "little")
    if len(table) < _COUNT_BYTES or not _UNIT_BYTES <= claimed <= len(table) - _COUNT_BYTES:
        raise ValueError(f"has a precompiled_charsmap of {len(table)} bytes whose trie claims {claimed}")
    if claimed > _MAX_UNITS * _UNIT_BYTES:
        raise ValueError(f"has a precompiled_charsmap with a trie of {claimed} bytes, expected at most 4 MiB")
    units = np.frombuffer(table, "<u4", claimed // _UNIT_BYTES, _COUNT_BYTES).astype(np.int64)
    if not _is_valid_trie(units, np.frombuffer(table, np.uint8, offset=_COUNT_BYTES + claimed)):
        raise ValueError("has a precompiled_charsmap that points beyond its end")


def _is_valid_trie(units: npt.NDArray[np.int64], texts: npt.NDArray[np.uint8]) -> bool:
    """Return whether all paths from the root stay in the trie, and all values point to the start of a character."""
    seen = np.zeros(len(units), dtype=bool)
    bytes_ = np.arange(1, 256)
    new = np.zeros(1, dtype=np.int64)
    while len(new):
        nodes, rest = new[:_BLOCK], new[_BLOCK:]
        seen[nodes] = True
        children = _base(units, nodes)[:, None] ^ bytes_
        if children.max() >= len(units):
            return False
        children = children[(units[children] & _LABEL) == bytes_]
        if not _have_valid_values(units, texts, children):
            return False
        new = np.concatenate([rest, np.unique(children[~seen[children]])])
        seen[new] = True
    return True


def _have_valid_values(
    units: npt.NDArray[np.int64], texts: npt.NDArray[np.uint8], nodes: npt.NDArray[np.int64]
) -> bool:
    places = _base(units, nodes[(units[nodes] >> 8) & 1 == 1])
    if places.max(initial=0) >= len(units):
        return False
    values = units[places] & _VALUE
    if values.max(initial=0) > len(texts):
        return False
    return not (texts[values[values < len(texts)]] & 0xC0 == 0x80).any()


def _base(units: npt.NDArray[np.int64], nodes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the base offset of the children of each node."""
    values = units[nodes]
    base: npt.NDArray[np.int64] = nodes ^ ((values >> 10) << ((values & (1 << 9)) >> 6))
    return base
