"""LanceDB: an embedding function for its registry, named "edgeembed"."""

from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.integrations._loading import requires, shared_encoder

with requires("lancedb", "lancedb"):
    from lancedb.embeddings import TextEmbeddingFunction, register
    from pydantic import PrivateAttr


@register("edgeembed")
class EdgeEmbedEmbeddings(TextEmbeddingFunction):
    """Embed the source column and the queries of a LanceDB table. Make one with `EdgeEmbedEmbeddings.create(...)`.

    The table stores the bundle's name or path, and its fingerprint: another encoder at that path is rejected. A program
    that opens the table must have imported this module before, so that LanceDB knows the class.

    Attributes:
        bundle: The name of a built-in encoder or the path of a bundle, as for `Encoder`.
        threads: The number of threads that encode many texts, as for `Encoder`.
        truncate_dim: The number of leading dimensions to keep; None keeps all.
        fingerprint: The fingerprint that the bundle must have; None accepts any.

    Raises:
        InputError: If there is no such bundle, or it has another fingerprint.
    """

    bundle: str | None = None
    threads: int | None = 1
    truncate_dim: int | None = None
    fingerprint: str | None = None

    _encoder: Any = PrivateAttr()

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self._encoder = shared_encoder(self.bundle, self.threads, fingerprint=self.fingerprint)

    def ndims(self) -> int:
        """Return the dimension of an embedding."""
        return self.truncate_dim or int(self._encoder.dimension)

    def safe_model_dump(self) -> dict[str, Any]:
        """Return what a table stores: the arguments of `create`, and the bundle's fingerprint."""
        return {**super().safe_model_dump(), "fingerprint": self._encoder.bundle.fingerprint}

    def compute_query_embeddings(self, query: Any, *_: Any, **__: Any) -> list[npt.NDArray[np.float32]]:
        """Return the embeddings of queries, with the bundle's prompt for queries.

        Args:
            query: A query, or many.

        Returns:
            One (dimension,) float32 array per query, L2-normalized.
        """
        return list(self._encoder.encode_query(self.sanitize_input(query), truncate_dim=self.truncate_dim))

    def generate_embeddings(self, texts: Any, *_: Any, **__: Any) -> list[npt.NDArray[np.float32] | None]:
        """Return the embeddings of the source column, with the bundle's prompt for documents.

        Args:
            texts: The documents; None is a missing one.

        Returns:
            One (dimension,) float32 array per document, L2-normalized; None for a missing one.
        """
        present = [text for text in texts if text is not None]
        embeddings = iter(self._encoder.encode_document(present, truncate_dim=self.truncate_dim))
        return [None if text is None else next(embeddings) for text in texts]

    def compute_query_embeddings_with_retry(self, *arguments: Any, **options: Any) -> list[npt.NDArray[np.float32]]:
        """Return the same as `compute_query_embeddings`: a local encoder that fails will fail again."""
        return self.compute_query_embeddings(*arguments, **options)

    def compute_source_embeddings_with_retry(
        self, *arguments: Any, **options: Any
    ) -> list[npt.NDArray[np.float32] | None]:
        """Return the same as `compute_source_embeddings`: a local encoder that fails will fail again."""
        embeddings: list[npt.NDArray[np.float32] | None] = self.compute_source_embeddings(*arguments, **options)
        return embeddings
