"""What the results of public functions have in common: plain data, JSON, Markdown and display in a notebook."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Report:
    """Mixin of dataclasses that public functions return.

    Fields may be dataclasses, paths, mappings, sequences, and NumPy scalars.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data that JSON can hold; paths become text."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the report as JSON, and write it to a file if a path is given.

        Args:
            path: File to write, UTF-8; an existing one is replaced. None writes no file.

        Raises:
            InputError: If the file cannot be written.
        """
        return write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return the report as Markdown, and write it to a file if a path is given.

        Args:
            path: File to write, UTF-8; an existing one is replaced. None writes no file.

        Raises:
            InputError: If the file cannot be written.
        """
        return write_text(self._markdown(), path)

    def _repr_markdown_(self) -> str:
        """Display the report in Jupyter."""
        return self._markdown()

    def _markdown(self) -> str:
        """Return a table of two columns, field and value. Nested fields have dotted names."""
        rows = _rows(self.to_dict())
        return "\n".join(["| | |", "|---|---|", *(f"| {name} | {_cell(value)} |" for name, value in rows)]) + "\n"


def write_text(text: str, path: str | Path | None) -> str:
    """Write a text to a file, unless `path` is None, and return it; names in it are made valid by `valid_unicode`.

    Raises:
        InputError: If the file cannot be written.
    """
    text = valid_unicode(text)
    if path is not None:
        from edgeembed_runtime.storage.atomic import atomic_file

        with atomic_file(Path(path), force=True) as file:
            file.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")
    return text


def valid_unicode(text: str) -> str:
    """Return a text with lone surrogates escaped, which no file of UTF-8 can hold.

    Python has them in the names of files that are not UTF-8, one for each byte: byte E9 becomes `%E9`.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(_escaped(c) if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def _escaped(surrogate: str) -> str:
    code = ord(surrogate)
    return f"%{code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else f"%u{code:04X}"


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return value.item() if hasattr(value, "item") else value


def _rows(fields: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            rows += _rows(value, f"{prefix}{name}.")
        else:
            rows.append((f"{prefix}{name}".replace("|", "\\|"), value))
    return rows


def _cell(value: Any) -> str:
    if value is None:
        return "not measured"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(_cell, value)) or "none"
    return str(value).replace("|", "\\|").replace("\n", " ")
