"""LangChain: an `Embeddings` class."""

import os

from edgeembed_runtime._validation import validate_texts
from edgeembed_runtime.integrations._loading import requires, shared_encoder

with requires("langchain-core", "langchain"):
    from langchain_core.embeddings import Embeddings


class EdgeEmbedEmbeddings(Embeddings):
    """Embed the documents and queries of a LangChain vector store.

    The asynchronous methods run the encoder in a thread, as the base class does by default.

    Args:
        bundle: The name of a built-in encoder or the path of a bundle, as for `Encoder`.
        threads: The number of threads that encode many texts, as for `Encoder`.
        truncate_dim: The number of leading dimensions to keep; None keeps all.

    Raises:
        InputError: If there is no such bundle.
    """

    def __init__(
        self, bundle: str | os.PathLike[str] | None = None, *, threads: int | None = 1, truncate_dim: int | None = None
    ) -> None:
        self._encoder = shared_encoder(bundle, threads)
        self._truncate_dim = truncate_dim

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the embeddings of documents, with the bundle's prompt for documents.

        Args:
            texts: The documents.

        Returns:
            One list of `dimension` floats per document, L2-normalized.

        Raises:
            InputError: If `texts` is not a list of str.
        """
        documents = validate_texts(texts, "document")
        embeddings = self._encoder.encode_document(documents, truncate_dim=self._truncate_dim)
        return embeddings.tolist()  # type: ignore[no-any-return] # NumPy's annotation

    def embed_query(self, text: str) -> list[float]:
        """Return the embedding of a query, with the bundle's prompt for queries.

        Args:
            text: The query.

        Returns:
            A list of `dimension` floats, L2-normalized.

        Raises:
            InputError: If `text` is not a str.
        """
        (query,) = validate_texts([text], "query")
        embedding = self._encoder.encode_query(query, truncate_dim=self._truncate_dim)
        return embedding.tolist()  # type: ignore[no-any-return] # NumPy's annotation
