"""Chroma: an embedding function that a collection stores and builds again."""

import os
from typing import Any

from edgeembed_runtime._validation import validate_texts
from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.integrations._loading import bundle_name, requires, shared_encoder

with requires("chromadb", "chroma"):
    from chromadb.api.types import Documents, EmbeddingFunction, Embeddings, Space
    from chromadb.utils.embedding_functions import register_embedding_function

_PARAMETERS = {"bundle", "threads", "truncate_dim", "fingerprint"}


@register_embedding_function
class EdgeEmbedEmbeddingFunction(EmbeddingFunction[Documents]):
    """Embed the documents and queries of a Chroma collection.

    The collection stores the bundle's name or path, and its fingerprint: another encoder at that path is rejected. A
    program that opens the collection must have imported this module before, so that Chroma knows the class.

    Args:
        bundle: The name of a built-in encoder or the path of a bundle, as for `Encoder`.
        threads: The number of threads that encode many texts, as for `Encoder`.
        truncate_dim: The number of leading dimensions to keep; None keeps all.
        fingerprint: The fingerprint that the bundle must have; None accepts any.

    Raises:
        InputError: If there is no such bundle, or it has another fingerprint.
    """

    def __init__(
        self,
        bundle: str | os.PathLike[str] | None = None,
        threads: int | None = 1,
        truncate_dim: int | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self._bundle = bundle_name(bundle)
        self._threads = threads
        self._truncate_dim = truncate_dim
        self._encoder = shared_encoder(bundle, threads, fingerprint=fingerprint)

    def __call__(self, input: Documents) -> Embeddings:  # noqa: A002 - Chroma checks this name
        """Return the embeddings of documents, with the bundle's prompt for documents.

        Args:
            input: The documents.

        Returns:
            One (dimension,) float32 array per document, L2-normalized.

        Raises:
            InputError: If `input` is not a list of str.
        """
        documents = validate_texts(input, "document")
        return list(self._encoder.encode_document(documents, truncate_dim=self._truncate_dim))

    def embed_query(self, input: Documents) -> Embeddings:  # noqa: A002 - as above
        """Return the embeddings of queries, with the bundle's prompt for queries.

        Args:
            input: The queries.

        Returns:
            One (dimension,) float32 array per query, L2-normalized.

        Raises:
            InputError: If `input` is not a list of str.
        """
        queries = validate_texts(input, "query")
        return list(self._encoder.encode_query(queries, truncate_dim=self._truncate_dim))

    @staticmethod
    def name() -> str:
        """Return the name under which Chroma stores this class."""
        return "edgeembed"

    def default_space(self) -> Space:
        """Return the distance that a collection uses unless it is told another one."""
        return "cosine"

    def get_config(self) -> dict[str, Any]:
        """Return what a collection stores: the arguments, and the bundle's fingerprint."""
        return {
            "bundle": self._bundle,
            "threads": self._threads,
            "truncate_dim": self._truncate_dim,
            "fingerprint": self._encoder.bundle.fingerprint,
        }

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> "EdgeEmbedEmbeddingFunction":
        """Return the embedding function that `get_config` described.

        Raises:
            InputError: If there is no such bundle, or it has another fingerprint.
        """
        EdgeEmbedEmbeddingFunction.validate_config(config)
        return EdgeEmbedEmbeddingFunction(**config)

    @staticmethod
    def validate_config(config: dict[str, Any]) -> None:
        """Raise InputError if a stored configuration has a key that this version does not know."""
        if unknown := sorted(set(config) - _PARAMETERS):
            raise InputError(f"the configuration has {short_repr(unknown)}, expected {', '.join(sorted(_PARAMETERS))}")

    def validate_config_update(self, old_config: dict[str, Any], new_config: dict[str, Any]) -> None:
        """Raise InputError if a collection's vectors would not fit the new configuration.

        Args:
            old_config: The stored configuration.
            new_config: The new one. The bundle may have moved, but must be the same.
        """
        for key in ("fingerprint", "truncate_dim"):
            if old_config.get(key) != new_config.get(key):
                raise InputError(
                    f"{key} is {short_repr(new_config.get(key))}, expected {short_repr(old_config.get(key))} as for "
                    "the stored vectors; make a new collection"
                )
