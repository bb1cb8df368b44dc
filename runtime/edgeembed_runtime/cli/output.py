"""What commands print."""

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeembed_runtime.hits import Hit


def print_json(document: object) -> None:
    """Print one JSON document; dataclasses become objects."""
    print(json.dumps(document, indent=2, default=_plain))


def print_hits(query: str | None, hits: Sequence["Hit"], *, as_json: bool) -> None:
    """Print hits, one a line: score, position, document."""
    if as_json:
        print_json({"query": query, "hits": hits})
        return
    for hit in hits:
        print(f"{hit.score:.4f}\t{hit.index}\t{' '.join(hit.document.split())}")


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)
