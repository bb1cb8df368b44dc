"""Haystack: a text embedder for queries and a document embedder."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.integrations._loading import bundle_name, requires, shared_encoder

if TYPE_CHECKING:
    from edgeembed_runtime.encoder import Encoder

with requires("haystack-ai", "haystack"):
    from haystack import Document, component, default_to_dict


@component
class EdgeEmbedTextEmbedder:
    """Embed the query of a Haystack pipeline, with the bundle's prompt for queries.

    Args:
        bundle: The name of a built-in encoder or the path of a bundle, as for `Encoder`. It is loaded by `warm_up`,
            which a pipeline calls before its first run.
        threads: The number of threads that encode many texts, as for `Encoder`.
        truncate_dim: The number of leading dimensions to keep; None keeps all.
    """

    def __init__(
        self, bundle: str | os.PathLike[str] | None = None, threads: int | None = 1, truncate_dim: int | None = None
    ) -> None:
        self.bundle = bundle_name(bundle)
        self.threads = threads
        self.truncate_dim = truncate_dim
        self._encoder: Encoder | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the component's class and parameters, as a pipeline stores them."""
        stored: dict[str, Any] = default_to_dict(
            self, bundle=self.bundle, threads=self.threads, truncate_dim=self.truncate_dim
        )
        return stored

    def warm_up(self) -> None:
        """Load the encoder.

        Raises:
            InputError: If there is no such bundle.
        """
        self._encoder = self._load()

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        """Return the embedding of a query.

        Args:
            text: The query.

        Returns:
            {"embedding": a list of `dimension` floats, L2-normalized}.

        Raises:
            InputError: If `text` is not a str.
        """
        if not isinstance(text, str):
            message = f"the text is {type(text).__name__}, expected str; EdgeEmbedDocumentEmbedder embeds documents"
            raise InputError(message)
        return {"embedding": self._load().encode_query(text, truncate_dim=self.truncate_dim).tolist()}

    def _load(self) -> "Encoder":
        return self._encoder or shared_encoder(self.bundle, self.threads)


@component
class EdgeEmbedDocumentEmbedder:
    """Embed the documents of a Haystack pipeline, with the bundle's prompt for documents.

    Args:
        bundle: The name of a built-in encoder or the path of a bundle, as for `Encoder`. It is loaded by `warm_up`,
            which a pipeline calls before its first run.
        threads: The number of threads that encode many texts, as for `Encoder`.
        truncate_dim: The number of leading dimensions to keep; None keeps all.
        meta_fields_to_embed: The fields of a document's metadata that are put before its content.
        embedding_separator: What separates these fields and the content.
    """

    def __init__(
        self,
        bundle: str | os.PathLike[str] | None = None,
        threads: int | None = 1,
        truncate_dim: int | None = None,
        meta_fields_to_embed: Sequence[str] = (),
        embedding_separator: str = "\n",
    ) -> None:
        self.bundle = bundle_name(bundle)
        self.threads = threads
        self.truncate_dim = truncate_dim
        self.meta_fields_to_embed = list(meta_fields_to_embed)
        self.embedding_separator = embedding_separator
        self._encoder: Encoder | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the component's class and parameters, as a pipeline stores them."""
        stored: dict[str, Any] = default_to_dict(
            self,
            bundle=self.bundle,
            threads=self.threads,
            truncate_dim=self.truncate_dim,
            meta_fields_to_embed=self.meta_fields_to_embed,
            embedding_separator=self.embedding_separator,
        )
        return stored

    def warm_up(self) -> None:
        """Load the encoder.

        Raises:
            InputError: If there is no such bundle.
        """
        self._encoder = self._load()

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        """Return copies of the documents with their embeddings.

        Args:
            documents: The documents. One without content is embedded as its metadata fields alone.

        Returns:
            {"documents": the copies}. An embedding is a list of `dimension` floats, L2-normalized.

        Raises:
            InputError: If `documents` is not a list of Haystack documents.
        """
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            message = f"the documents are {type(documents).__name__}, expected a list of Haystack documents"
            raise InputError(f"{message}; EdgeEmbedTextEmbedder embeds queries")
        texts = [self._text(document) for document in documents]
        embeddings = self._load().encode_document(texts, truncate_dim=self.truncate_dim).tolist()
        pairs = zip(documents, embeddings, strict=True)
        return {"documents": [replace(document, embedding=embedding) for document, embedding in pairs]}

    def _load(self) -> "Encoder":
        return self._encoder or shared_encoder(self.bundle, self.threads)

    def _text(self, document: Any) -> str:
        fields = (document.meta.get(field) for field in self.meta_fields_to_embed)
        parts = [str(field) for field in fields if field is not None]
        return self.embedding_separator.join([*parts, document.content or ""])
