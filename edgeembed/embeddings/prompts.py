"""Which text a teacher reads before each text that it encodes: one rule, wherever a teacher encodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgeembed_runtime.errors import InputError, short_repr

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_CONFIG = "config_sentence_transformers.json"
# In the order in which sentence-transformers looks for them.
_QUERY = ("query",)
_DOCUMENT = ("document", "passage", "corpus")


@dataclass(frozen=True)
class Prompts:
    """The prompts of a model.

    Attributes:
        texts: Each prompt that is not empty, by name.
        default: Name of the prompt that the model reads if none is asked for; None without one.
    """

    texts: Mapping[str, str]
    default: str | None

    @classmethod
    def of(cls, model: Path | SentenceTransformer) -> Prompts:
        """Return the prompts of a model's folder, or of a loaded model."""
        if isinstance(model, Path):
            file = model / _CONFIG
            config = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
            prompts, default = config.get("prompts") or {}, config.get("default_prompt_name")
        else:
            prompts, default = model.prompts, model.default_prompt_name
        return cls({name: text for name, text in prompts.items() if text}, default)

    def document(self, given: str | None = None) -> str:
        """Return the prompt for documents, and for texts of any kind; empty for none.

        Args:
            given: The prompt, if the caller chose one; empty for none. None for the model's: that of the name
                "document", "passage" or "corpus", otherwise its default prompt.
        """
        return self._find(_DOCUMENT, given)

    def query(self, given: str | None = None) -> str:
        """Return the prompt for queries; empty for none.

        Args:
            given: As for `document`; the model's is that of the name "query", otherwise its default prompt.
        """
        return self._find(_QUERY, given)

    def _find(self, names: Sequence[str], given: str | None) -> str:
        if given is not None:
            return given
        return next((self.texts[name] for name in names if name in self.texts), self.texts.get(self.default or "", ""))

    def unused(self, used: str) -> dict[str, str]:
        """Return the prompts other than the one that is used, by name."""
        return {name: text for name, text in self.texts.items() if text != used}


def check_prompt(name: str, prompt: object) -> None:
    """Raise InputError if an argument is neither a prompt nor None."""
    if prompt is not None and not isinstance(prompt, str):
        raise InputError(f"{name} is {short_repr(prompt)}; expected a text to put before each text, or None")
