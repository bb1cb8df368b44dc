"""The output of results: JSON, Markdown, a page of HTML, and the HTML that notebooks show."""

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from edgeembed_runtime.report import Report, write_text


class Renderable(Report, ABC):
    """Base class of results with a renderer of their own, which are written to files and shown in a notebook."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the result as built-in types that `json` can write."""

    @abstractmethod
    def _markdown(self) -> str:
        """Return the result as a Markdown document."""

    @abstractmethod
    def _html(self, *, is_page: bool) -> str:
        """Return the result as a whole HTML page, or as the part of a page that a notebook shows."""

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the result as JSON, and write it to a file if a path is given.

        Args:
            path: File to write, UTF-8; an existing one is replaced. None writes no file.

        Returns:
            The JSON text, on one line.

        Raises:
            InputError: If the file cannot be written.
        """
        return write_text(json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the result as a self-contained HTML page, and write it to a file if a path is given.

        Args:
            path: File to write, UTF-8; an existing one is replaced. None writes no file.

        Returns:
            The page. It loads no other files, follows the reader's light or dark color scheme, and fits phones and
            paper.

        Raises:
            InputError: If the file cannot be written.
        """
        return write_text(self._html(is_page=True), path)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows for the result: its tables and plots, without a page around them."""
        return self._html(is_page=False)
