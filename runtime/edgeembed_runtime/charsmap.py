"""Validate a `precompiled_charsmap`, SentencePiece's table of character replacements.

The table consists of a size in bytes, a double-array trie (Aoe 1989, in the layout of Darts-clone) of that size, and
the replacements, each terminated by a zero byte. The tokenizers library follows the trie without bounds checks.
"""

import numpy as np
import numpy.typing as npt

_COUNT_BYTES = 4
_UNIT_BYTES = 4
_VALUE = 2**31 - 1
_LABEL = 2**31 | 0xFF
# The trie of XLM-R has 60,000.
_MAX_UNITS = 2**20
_BLOCK = 4096


def check_charsmap(table: bytes) -> None:
    """Raise ValueError if the lookup of some text would read outside a table.

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
    found = units[nodes]
    base: npt.NDArray[np.int64] = nodes ^ ((found >> 10) << ((found & (1 << 9)) >> 6))
    return base
