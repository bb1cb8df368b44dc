"""Labelled pairs: a text, one that means as much, and perhaps one that only looks so."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.sources import split_columns
from edgeembed.corpus.tables import read_rows, read_table

COLUMNS = ("anchor", "positive", "hard_negative")
"""What the columns of pairs are called; the last may be absent."""


def read_pairs(sources: Sequence[str | Path]) -> dict[str, list[str]]:
    """Read labelled pairs, or triplets with hard negatives.

    Args:
        sources: TSV or CSV files, as `read_rows` takes them, with a header that names `anchor`, `positive` and perhaps
            `hard_negative`; other columns are left alone. `#column1,column2` after a path tells which columns of it
            are those.

    Returns:
        The texts by column, row by row, file after file.

    Raises:
        InputError: If a file cannot be read or lacks a column, only some have hard negatives, or there are fewer than
            two pairs.
    """
    tables = [_read(str(source)) for source in sources]
    if len({len(table) for table in tables}) > 1:
        without = [str(source) for source, table in zip(sources, tables, strict=True) if COLUMNS[-1] not in table]
        raise InputError(
            f"{', '.join(without)} has no {COLUMNS[-1]}, but other pairs have; expected it everywhere or nowhere: "
            "`edgeembed mine` finds hard negatives"
        )
    together = {name: [text for table in tables for text in table[name]] for name in tables[0]}
    count = len(together[COLUMNS[0]])
    if count < 2:
        raise InputError(f"{', '.join(map(str, sources))} holds {count} pairs; expected two or more")
    return together


def expect_hard_negatives(pairs: Mapping[str, Sequence[str]], sources: Sequence[str | Path]) -> None:
    """Refuse pairs without hard negatives.

    Args:
        pairs: What `read_pairs` gave.
        sources: Where it is from.

    Raises:
        InputError: If they have none.
    """
    if COLUMNS[-1] not in pairs:
        raise InputError(
            f"{', '.join(map(str, sources))} has no {COLUMNS[-1]}, which the recipe compares a positive with: "
            "`edgeembed mine` finds hard negatives"
        )


def _read(source: str) -> dict[str, list[str]]:
    path, asked = split_columns(source)
    chosen = asked or _named(path)
    if len(chosen) not in (2, 3):
        raise InputError(
            f"{source} names {len(chosen)} columns; expected those of {', '.join(COLUMNS[:2])} and perhaps {COLUMNS[2]}"
        )
    texts = [" ".join(text.split()) for text in read_table(path, chosen)]  # a field of CSV may hold line breaks
    return {name: texts[index :: len(chosen)] for index, name in enumerate(COLUMNS[: len(chosen)])}


def _named(path: Path) -> tuple[str, ...]:
    _, found = next(read_rows(path), (0, []))
    if not set(COLUMNS[:2]) <= set(found):
        raise InputError(
            f"{path} has the columns {', '.join(found)}; expected a TSV or CSV with anchor, positive and perhaps "
            f"{COLUMNS[2]}: choose with PATH#column1,column2"
        )
    return tuple(name for name in COLUMNS if name in found)
