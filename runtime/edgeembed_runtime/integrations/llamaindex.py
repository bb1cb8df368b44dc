"""LlamaIndex: a `BaseEmbedding` class."""

import asyncio
import os
from typing import Any

from edgeembed_runtime.integrations._loading import bundle_name, requires, shared_encoder

with requires("llama-index-core", "llamaindex"):
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import Field, PrivateAttr


class EdgeEmbedEmbedding(BaseEmbedding):
    """Embed the nodes and queries of a LlamaIndex index. The asynchronous methods run the encoder in a thread.

    Args:
        bundle: The name of a built-in encoder or the path of a bundle, as for `Encoder`.
        threads: The number of threads that encode many texts, as for `Encoder`.
        truncate_dim: The number of leading dimensions to keep; None keeps all.
        options: The other fields of `BaseEmbedding`, such as `embed_batch_size`. `model_name` is the bundle's name
            unless it is given.

    Raises:
        InputError: If there is no such bundle.
    """

    bundle: str | None = Field(default=None, description="The name of a built-in encoder or the path of a bundle.")
    threads: int | None = Field(default=1, description="The number of threads that encode many texts.")
    truncate_dim: int | None = Field(default=None, description="The number of leading dimensions to keep.")

    _encoder: Any = PrivateAttr()

    def __init__(
        self,
        bundle: str | os.PathLike[str] | None = None,
        *,
        threads: int | None = 1,
        truncate_dim: int | None = None,
        **options: Any,
    ) -> None:
        encoder = shared_encoder(bundle, threads)
        options.setdefault("model_name", encoder.bundle.name)
        super().__init__(bundle=bundle_name(bundle), threads=threads, truncate_dim=truncate_dim, **options)
        self._encoder = encoder

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex stores this class."""
        return "EdgeEmbedEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        embedding: list[float] = self._encoder.encode_query(query, truncate_dim=self.truncate_dim).tolist()
        return embedding

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        embeddings: list[list[float]] = self._encoder.encode_document(texts, truncate_dim=self.truncate_dim).tolist()
        return embeddings

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)
