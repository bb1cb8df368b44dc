"""Labelled pairs: a text, one that means as much, and perhaps one that only looks so."""

from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.streams import read_lines
from edgeembed.corpus.tables import read_tsv

_ALWAYS, _HARD = ("anchor", "positive"), "hard_negative"


def read_pairs(path: Path) -> dict[str, list[str]]:
    """Read labelled pairs, or triplets with hard negatives.

    Args:
        path: UTF-8, tab-separated, no quoting, plain or compressed, with a header that names `anchor`, `positive` and
            perhaps `hard_negative`; other columns are left alone.

    Returns:
        The texts by column, row by row.

    Raises:
        InputError: If the file cannot be read, lacks a column, or holds fewer than two pairs.
    """
    _, header = next(read_lines(path), (0, ""))
    found = header.split("\t")
    if not set(_ALWAYS) <= set(found):
        raise InputError(
            f"{path} has the columns {', '.join(found)}; expected a TSV with anchor, positive and perhaps {_HARD}"
        )
    columns = [*_ALWAYS, *([_HARD] if _HARD in found else [])]
    texts = list(read_tsv(path, columns))
    if len(texts) < 2 * len(columns):
        raise InputError(f"{path} holds {len(texts) // len(columns)} pairs; expected two or more")
    return {name: texts[index :: len(columns)] for index, name in enumerate(columns)}
