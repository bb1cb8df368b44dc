"""The settings of `edgeembed.export`: those of a bundle, and those that name text and files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from edgeembed_exporters.bundle_settings import BEFORE_FINETUNING, BundleKeywords, BundleSettings
from edgeembed_exporters.settings import Unchecked
from pydantic import Field, model_validator

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from tokenizers import Tokenizer

    from edgeembed.corpus.inputs import CorpusLike

    Corpus: TypeAlias = CorpusLike | None
    Vocabulary: TypeAlias = str | os.PathLike[str] | Tokenizer | None
    Facts: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | None
else:
    Corpus = Vocabulary = Facts = Any

_TEXT = Unchecked(
    "a file, a folder, a URL, - for stdin, or pydoc:, a list of them, texts, or a dataset", "CORPUS", True
)
_TOKENIZER = Unchecked("a tokenizer.json, or a Tokenizer", "FILE")
_FACTS = Unchecked("a JSON file, or a mapping", "FILE")


class ExportSettings(BundleSettings):
    """The settings of an export. Wrong settings raise InputError.

    They are the keywords of `edgeembed.export` and the options of `edgeembed export`. `ExportKeywords` repeats names
    and types for type checkers; a test compares both.
    """

    trim_to: Annotated[Corpus, _TEXT, BEFORE_FINETUNING] = Field(
        default=None,
        description="Text whose tokens are kept; the others are removed from vocabulary and embedding table.",
    )
    vocabulary: Annotated[Vocabulary, _TOKENIZER, BEFORE_FINETUNING] = Field(
        default=None,
        description="Keep the tokens of this tokenizer, which `edgeembed vocab --trim` made from the model's.",
    )
    fit: Annotated[Corpus, _TEXT, BEFORE_FINETUNING] = Field(
        default=None, description="Text that the PCA is fitted on."
    )
    sentences: Annotated[Corpus, _TEXT] = Field(
        default=None, description="Text to compare model and bundle on; 400 sentences of it are used."
    )
    license: str | None = Field(default=None, description="License of the weights, such as apache-2.0.")
    languages: Sequence[str] = Field(default=(), description="Language codes for the card.", examples=[["en"]])
    quality: Annotated[Facts, _FACTS] = Field(default=None, description="Scores for the card, a JSON object.")
    latency: Annotated[Facts, _FACTS] = Field(default=None, description="Times for the card, a JSON object.")

    @classmethod
    def default_text(cls, name: str) -> str | None:
        """Return a setting's default, for help and reference; None if there is none to be shown."""
        return {
            "sentences": "`trim_to`, `fit`, or 280 sentences in edgeembed",
            "license": "that of the model's card",
            "languages": "those of the model's card",
            "quality": "those of a student's distillation",
        }.get(name) or super().default_text(name)

    @model_validator(mode="after")
    def _check_texts(self) -> ExportSettings:
        self.check_reduction(vocabulary=self.vocabulary, trim_to=self.trim_to, fit=self.fit)
        return self


class ExportKeywords(BundleKeywords, total=False):
    """The fields of `ExportSettings` as keywords."""

    trim_to: Corpus
    vocabulary: Vocabulary
    fit: Corpus
    sentences: Corpus
    license: str | None
    languages: Sequence[str]
    quality: Facts
    latency: Facts
