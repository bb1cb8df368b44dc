"""Printing of results."""

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeembed_runtime.hits import Hit

_JOINERS = "\u200c\u200d"  # not printable, but part of emoji and of several scripts


def print_json(document: object) -> None:
    """Print one JSON document; dataclasses become objects."""
    print(json.dumps(document, indent=2, default=_as_json))


def print_hits(query: str | None, hits: Sequence["Hit"], *, as_json: bool) -> None:
    """Print hits, one per line: score, id, document."""
    if as_json:
        print_json({"query": query, "hits": hits})
        return
    for hit in hits:
        print(f"{hit.score:.4f}\t{hit.id}\t{plain(hit.document)}")


def plain(text: str) -> str:
    """Return a text as one line, with control characters escaped, so that it is safe to print in a terminal."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() or c in _JOINERS else c.encode("unicode_escape").decode("ascii") for c in line)


def _as_json(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)
