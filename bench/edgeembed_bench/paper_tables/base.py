"""A paper's table with our rows: what it shows, the raw samples behind it, and what a reader has to know."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from edgeembed_bench.machine import Load, Machine

SCHEMA_VERSION = 1  # 1: the first


@dataclass(frozen=True)
class PaperTable:
    """A paper's cost table, filled in.

    Attributes:
        form: Its name: "simtde", "hpd", "xayn" or "cmow".
        source: The paper and its table.
        columns: Titles, the subject's name first, with units.
        rows: As many cells each, as text.
        notes: How it was measured, and where that departs from the paper.
        samples: Raw samples by subject, and what they are by name, such as "pass_s".
        machine: Where.
        load: What else went on there.
        created_utc: When, ISO 8601.
    """

    form: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    samples: dict[str, dict[str, Any]]
    machine: Machine
    load: Load
    created_utc: str

    def to_json(self) -> str:
        """Give all of it as JSON text."""
        content = {"schema_version": SCHEMA_VERSION, "kind": "edgeembed bench form"} | asdict(self)
        return json.dumps(content, ensure_ascii=False, allow_nan=False)
